package simulated

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is one that the clusters serve.
type kind struct {
	resource, kind string
	namespaced     bool
}

// served are the kinds that syncers watch and write, by version.
var served = map[string][]kind{
	"v1": {
		{"namespaces", "Namespace", false}, {"nodes", "Node", false}, {"pods", "Pod", true}, {"services", "Service", true},
		{"configmaps", "ConfigMap", true}, {"secrets", "Secret", true}, {"serviceaccounts", "ServiceAccount", true},
		{"persistentvolumeclaims", "PersistentVolumeClaim", true}, {"replicationcontrollers", "ReplicationController", true},
		{"endpoints", "Endpoints", true}, {"events", "Event", true}, {"limitranges", "LimitRange", true},
		{"resourcequotas", "ResourceQuota", true},
	},
	"apps/v1": {
		{"deployments", "Deployment", true}, {"replicasets", "ReplicaSet", true}, {"statefulsets", "StatefulSet", true},
		{"daemonsets", "DaemonSet", true}, {"controllerrevisions", "ControllerRevision", true},
	},
	"batch/v1":                {{"jobs", "Job", true}, {"cronjobs", "CronJob", true}},
	"networking.k8s.io/v1":    {{"ingresses", "Ingress", true}, {"networkpolicies", "NetworkPolicy", true}, {"ingressclasses", "IngressClass", false}},
	"policy/v1":               {{"poddisruptionbudgets", "PodDisruptionBudget", true}},
	"discovery.k8s.io/v1":     {{"endpointslices", "EndpointSlice", true}},
	"scheduling.k8s.io/v1":    {{"priorityclasses", "PriorityClass", false}},
	"node.k8s.io/v1":          {{"runtimeclasses", "RuntimeClass", false}},
	"storage.k8s.io/v1":       {{"storageclasses", "StorageClass", false}},
	"apiextensions.k8s.io/v1": {{"customresourcedefinitions", "CustomResourceDefinition", false}},
}

// discovery answers what is asked at a path below /api and /apis; nil if there is nothing.
func discovery(path string) any {
	switch {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case path == "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, version := range slices.Sorted(maps.Keys(served)) {
			if gv, err := schema.ParseGroupVersion(version); err == nil && gv.Group != "" {
				v := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: gv.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		return groups
	}
	version, found := strings.CutPrefix(path, "/apis/")
	if !found {
		version = strings.TrimPrefix(path, "/api/")
	}
	kinds, known := served[version]
	if !known {
		return nil
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
	for _, k := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.resource, Kind: k.kind, Namespaced: k.namespaced,
			Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
		})
	}
	return list
}
