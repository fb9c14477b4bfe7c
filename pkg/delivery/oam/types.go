// Package oam makes of an ApplicationDeployment of core.oam.dev, the kind of KubeVela's document, a variant set whose variants are its revisions: what
// each cluster is to run of which revision, who gets what part of the requests, and in which order what runs becomes that.
//
// Everything here is a function of values, as in the other rooms of delivery.
package oam

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupVersion is what the kinds are served under.
var GroupVersion = schema.GroupVersion{Group: "core.oam.dev", Version: "v1beta1"}

// Kinds are the resources that are served, with their kinds. Both mean the same.
var Kinds = map[string]string{"applicationdeployments": "ApplicationDeployment", "appdeployments": "AppDeployment"}

// Names on these objects.
const (
	// Finalizer is held until nothing is left of what was made.
	Finalizer = "delivery.manifold.dev/applicationdeployment"
	// Routes stands in the place of a variant for what is of no revision alone. No variant can be called that.
	Routes = "(routes)"
)

// Object is an ApplicationDeployment or AppDeployment.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status"`
}

// Spec is what is to run.
type Spec struct {
	AppRevisions []AppRevision `json:"appRevisions"`
	TrafficRules []TrafficRule `json:"trafficRules,omitempty"`
	// Traffic is how rules are written in the examples of 2021.
	Traffic      *Traffic `json:"traffic,omitempty"`
	TrafficMode  Mode     `json:"trafficMode,omitempty"`
	HomeCluster  string   `json:"homeCluster,omitempty"`
	DrainSeconds *int32   `json:"drainSeconds,omitempty"`
}

// AppRevision is one revision, and where it runs.
type AppRevision struct {
	Name *intstr.IntOrString `json:"name,omitempty"`
	// Reference and Ref are two spellings. RevisionName is name and reference in one, as in the examples of 2021.
	Reference    *Reference  `json:"reference,omitempty"`
	Ref          *Reference  `json:"ref,omitempty"`
	RevisionName string      `json:"revisionName,omitempty"`
	Placement    []Placement `json:"placement,omitempty"`
	Service      *Service    `json:"service,omitempty"`
}

// Reference names an ApplicationRevision, or a workload of the namespace.
type Reference struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name"`
	// Revision is the one of a Deployment's history; 0 stands for what it is now.
	Revision int64 `json:"revision,omitempty"`
}

// UnmarshalJSON reads a name alone as that of an ApplicationRevision.
func (r *Reference) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &r.Name)
	}
	type plain Reference
	if err := json.Unmarshal(text, (*plain)(r)); err != nil {
		return fmt.Errorf("a reference is the name of an ApplicationRevision, or {kind: Deployment, name: NAME}: %w", err)
	}
	return nil
}

// Placement is a part of a revision.
type Placement struct {
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`
	Distribution    *Distribution    `json:"distribution,omitempty"`
}

// ClusterSelector selects clusters. What is set must all hold.
type ClusterSelector struct {
	Name   string            `json:"name,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Distribution is how many replicas a part has: a share, or a number.
type Distribution struct {
	Weight   *int32 `json:"weight,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
}

// Service publishes a revision.
type Service struct {
	HTTP *ServiceHTTP `json:"http,omitempty"`
}

// ServiceHTTP is the host of a revision.
type ServiceHTTP struct {
	Host string `json:"host,omitempty"`
	TLS  *TLS   `json:"tls,omitempty"`
}

// TLS says how a host is served.
type TLS struct {
	Mode       string `json:"mode,omitempty"`
	SecretName string `json:"secretName,omitempty"`
}

// Traffic is how rules are written in the examples of 2021.
type Traffic struct {
	Hosts    []string      `json:"hosts,omitempty"`
	Gateways []string      `json:"gateways,omitempty"`
	HTTP     []TrafficRule `json:"http,omitempty"`
}

// TrafficRule shares out requests.
type TrafficRule struct {
	Name            string           `json:"name,omitempty"`
	Match           []Match          `json:"match,omitempty"`
	WeightedTargets []WeightedTarget `json:"weightedTargets,omitempty"`
}

// Match restricts a rule.
type Match struct {
	URI *URI `json:"uri,omitempty"`
}

// URI is matched by its beginning.
type URI struct {
	Prefix string `json:"prefix,omitempty"`
}

// WeightedTarget is the part of a revision.
type WeightedTarget struct {
	RevisionName intstr.IntOrString `json:"revisionName"`
	Percent      *int32             `json:"percent,omitempty"`
	// Weight is what percent is called in the examples of 2021.
	Weight        *int32 `json:"weight,omitempty"`
	Port          int32  `json:"port,omitempty"`
	ComponentName string `json:"componentName,omitempty"`
}

// Mode is a way to share out requests.
type Mode string

// The modes.
const (
	// Istio shares out by the weights of a VirtualService.
	Istio Mode = "Istio"
	// Ingress gives each revision a path.
	Ingress Mode = "Ingress"
)

// The conditions of an ApplicationDeployment.
const (
	// ConditionReady says that everything is as the spec says.
	ConditionReady = "Ready"
	// ConditionRevisions says that all revisions are there.
	ConditionRevisions = "RevisionsFound"
	// ConditionPlaced says that every entry of placement has a cluster.
	ConditionPlaced = "Placed"
	// ConditionRouted says that clusters share out requests as the spec says.
	ConditionRouted = "Routed"
	// ConditionHonoured says that all is done that the spec and its revisions ask for.
	ConditionHonoured = "Honoured"
)

// Status is what runs.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// Summary is how many pods of each revision are ready, of how many.
	Summary string `json:"summary,omitempty"`
	// Placement is what each cluster runs of each revision.
	Placement []RevisionStatus `json:"placement,omitempty"`
	// Picks are the clusters that were picked of several.
	Picks []PickStatus `json:"picks,omitempty"`
	// Add, Mod and Del are the revisions that are on their way.
	Add []string `json:"add,omitempty"`
	Mod []string `json:"mod,omitempty"`
	Del []string `json:"del,omitempty"`
	// Ordered is how many replicas of each workload each cluster was told to have, by the names of objects.
	Ordered map[string]Size `json:"ordered,omitempty"`
	// DrainingSince is since when all that is to be added is there, and what is no longer wanted gets no more requests.
	DrainingSince *metav1.Time `json:"drainingSince,omitempty"`
}

// RevisionStatus is what runs of a revision.
type RevisionStatus struct {
	Revision string `json:"revision"`
	// Variant is what it is called in the names of objects.
	Variant string `json:"variant"`
	// Reference is what it is made of, and Service the one that leads to it alone.
	Reference string          `json:"reference,omitempty"`
	Service   string          `json:"service,omitempty"`
	Message   string          `json:"message,omitempty"`
	Clusters  []ClusterStatus `json:"clusters,omitempty"`
}

// ClusterStatus is what a cluster runs of a revision. Cluster is empty where none is there.
type ClusterStatus struct {
	Cluster string `json:"cluster,omitempty"`
	Wanted  int32  `json:"wanted"`
	Ready   int32  `json:"ready"`
	Message string `json:"message,omitempty"`
}

// PickStatus is the cluster that was picked of those that a selector selects.
type PickStatus struct {
	Component string `json:"component"`
	Selector  string `json:"selector"`
	Cluster   string `json:"cluster"`
}

// ID is what the objects of an ApplicationDeployment belong to, in the place where those of an Application have its name, which has no dot. It fits
// into a label with the name of a variant and a hash behind it.
func ID(kind, name string) string {
	const longest, kept = 28, 19
	if kind == Kinds["applicationdeployments"] && len(name) <= longest {
		return name + ".oam"
	}
	sum := sha256.Sum256([]byte(kind + "/" + name))
	return strings.TrimRight(name[:min(kept, len(name))], "-.") + "-" + hex.EncodeToString(sum[:4]) + ".oam"
}
