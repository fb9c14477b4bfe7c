package v1alpha1

// CustomWorkload describes a kind of custom resources whose objects lead to pods. It does not send any to clusters, which a pin or a policy
// that lists the kind does; those that are sent are placed as workloads are: by what their pods request, together with what the pods need.
//
// Paths name fields as the scale subresource of a definition does: .spec.replicas, without lists.
type CustomWorkload struct {
	// kind is the kind, written KIND.GROUP, such as LeaderWorkerSet.leaderworkerset.x-k8s.io. If several policies describe a kind, the one
	// that comes first by priority, age and name counts.
	Kind string `json:"kind"`
	// podTemplatePaths are the paths of pod templates, such as .spec.template. An object may lack some of them, and has at least one.
	// +listType=atomic
	PodTemplatePaths []string `json:"podTemplatePaths"`
	// podsPerReplicaPath is the path of the number of pods that each replica has, such as .spec.leaderWorkerTemplate.size. One is made of
	// each template that the object has, and all others are made of the last. Unset means one of each.
	// +optional
	PodsPerReplicaPath string `json:"podsPerReplicaPath,omitempty"`
	// specReplicasPath is the path of the number of replicas, such as .spec.replicas. Unset means one. An object without the field has one.
	// +optional
	SpecReplicasPath string `json:"specReplicasPath,omitempty"`
	// statusReplicasPath is the path of the number of replicas whose pods are there, such as .status.replicas. Room is kept for all others.
	// Unset counts all as there once their cluster has the object.
	// +optional
	StatusReplicasPath string `json:"statusReplicasPath,omitempty"`
	// divisible lets a policy that lists the kind and has a division of type Divide give each cluster a part of the replicas, in
	// specReplicasPath. Unset keeps each object whole in one cluster. It needs a specReplicasPath.
	// +optional
	Divisible bool `json:"divisible,omitempty"`
}
