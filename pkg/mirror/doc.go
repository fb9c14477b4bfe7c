// Package mirror says what the logical cluster shows of a pod, a volume claim or an event that a cluster has. It is pure: what the cluster
// says is compared with what the logical cluster knows, which is the controller above, its template, and the mirror as it is stored.
//
// Both ends use it. A syncer makes of a pod the mirror that may be shown; the API server refuses a mirror that is not its own image under the
// same function. So a credential of a syncer in other hands can write no more than an honest syncer does.
//
// What a cluster has a say in, and what not:
//
//   - A spec is that of the template, or of the mirror that is stored, with the fields in which clusters differ by right; see Spec.
//   - What a cluster adds, such as the sidecar of a webhook, is shown without what would have authority: privileges, parts of the host, and
//     references to Secrets, ConfigMaps and claims. It leaves with the pod and goes nowhere else; see Bare.
//   - Labels are those of the template, those that follow from the owner, and those that users have written above; see Owner.Labels.
//   - Annotations are the cluster's, except for those of Manifold.
//   - A status is the cluster's word about itself.
package mirror
