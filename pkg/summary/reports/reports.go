// Package reports is what clusters tell of the objects that they hold, for those who make one status of it. Syncers implement it.
package reports

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// Clusters are the physical clusters of a logical cluster.
type Clusters interface {
	// Reporter returns the one that tells of a cluster, if the cluster is connected. Reporters returns those of all connected clusters, in no order.
	Reporter(cluster string) (r Reporter, connected bool)
	Reporters() []Reporter
	// HasSynced reports whether the logical cluster has been read.
	HasSynced() bool
	// Goes reports whether an object of the logical cluster is on its way out of all clusters.
	Goes(key identity.Key) bool
	// MayHave reports whether a cluster that cannot be asked may have an object which follows workloads.
	MayHave(key identity.Key, above projection.Object, cluster string) bool
}

// Reporter tells of one cluster.
type Reporter interface {
	// Cluster is its name.
	Cluster() string
	// Report tells what the cluster has of an object. Known is false until everything that the cluster holds has been seen, and the object has been
	// looked at once.
	Report(key identity.Key, above projection.Object) (report summary.Report, known bool)
	// Expects reports whether an object that was there at the start is still to be looked at, Concerns whether the cluster has an object, is to
	// have it or is leaving it, by the record of the logical cluster.
	Expects(key identity.Key) bool
	Concerns(key identity.Key, above projection.Object) bool
	// Settled reports whether what is told of an object is what will be told until somebody changes something.
	Settled(key identity.Key) bool
	// Most is the largest number of replicas of an object that what the cluster was told explains.
	Most(resource schema.GroupVersionResource, above projection.Object) int32
	// ReplicaSets returns those that the cluster has for a Deployment, by the name of the one above that shows them.
	ReplicaSets(above *appsv1.Deployment) map[string][]*appsv1.ReplicaSet
	// TemplatesInUse returns the hashes of the templates above that the pods of an object carry out in the cluster.
	TemplatesInUse(key identity.Key) map[string]bool
	// AwaitShown counts the pods of a workload that the cluster says are ready, or have ended, and that are not shown so above yet.
	AwaitShown(key identity.Key) int
	// Adopter returns the workload above whose controller has taken over the projection of another one in the cluster, or nil.
	Adopter(key identity.Key, above projection.Object) *metav1.OwnerReference
}
