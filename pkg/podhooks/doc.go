// Package podhooks is what the parts of the product share that call the logical cluster's pod webhooks for pods which controllers make in
// clusters: where a cluster asks, how it shows that it may, for which namespaces it is to ask, and how the answer is found again on the pod.
//
// A cluster asks by a webhook that joining registers there. The logical cluster runs its own webhooks over the pod as it will be shown above, and
// answers with what they have changed. That is written on the pod, with a proof, so that the mirror may show it.
package podhooks
