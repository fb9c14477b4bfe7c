package hostile

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// object is something to make: its manifest has neither marks nor a namespace.
type object struct {
	namespace string
	resource  resourceOf
	manifest  map[string]any
}

// resourceOf is short for what is written often.
type resourceOf = schema.GroupVersionResource

func resource(group, version, plural string) resourceOf {
	return resourceOf{Group: group, Version: version, Resource: plural}
}

var (
	namespaces        = resource("", "v1", "namespaces")
	pods              = resource("", "v1", "pods")
	secrets           = resource("", "v1", "secrets")
	configMaps        = resource("", "v1", "configmaps")
	serviceAccounts   = resource("", "v1", "serviceaccounts")
	services          = resource("", "v1", "services")
	claims            = resource("", "v1", "persistentvolumeclaims")
	controllers       = resource("", "v1", "replicationcontrollers")
	limitRanges       = resource("", "v1", "limitranges")
	quotas            = resource("", "v1", "resourcequotas")
	endpoints         = resource("", "v1", "endpoints")
	endpointSlices    = resource("discovery.k8s.io", "v1", "endpointslices")
	deployments       = resource("apps", "v1", "deployments")
	replicaSets       = resource("apps", "v1", "replicasets")
	statefulSets      = resource("apps", "v1", "statefulsets")
	daemonSets        = resource("apps", "v1", "daemonsets")
	revisions         = resource("apps", "v1", "controllerrevisions")
	jobs              = resource("batch", "v1", "jobs")
	ingresses         = resource("networking.k8s.io", "v1", "ingresses")
	networkPolicies   = resource("networking.k8s.io", "v1", "networkpolicies")
	budgets           = resource("policy", "v1", "poddisruptionbudgets")
	placementPolicies = resource("manifold.dev", "v1alpha1", "placementpolicies")
	clusterPolicies   = resource("manifold.dev", "v1alpha1", "clusterplacementpolicies")
	definitions       = resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	trinkets          = resource(customGroup, "v1", "trinkets")
	flocks            = resource(customGroup, "v1", "flocks")
)

// parse reads a manifest, in which %[1]s stands for the name.
func parse(manifest, name string) map[string]any {
	var out map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, manifest, name), &out); err != nil {
		panic(err) // the manifest is the test's own
	}
	return out
}

// pod is a template that asks for next to nothing and for a Secret.
const template = `{metadata: {labels: {app: %[1]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "IMAGE",
  resources: {requests: {cpu: 1m}}, envFrom: [{secretRef: {name: crown, optional: true}}]}]}}`

// manifests are of every kind that goes up or down, as one would write them.
var manifests = map[resourceOf]string{
	deployments: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {replicas: 1, selector: {matchLabels: {app: "%[1]s"}}, template: ` + template + `}}`,
	replicaSets: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {replicas: 1, selector: {matchLabels: {app: "%[1]s"}}, template: ` + template + `}}`,
	statefulSets: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {replicas: 1, serviceName: "%[1]s", selector: {matchLabels: {app: "%[1]s"}}, template: ` + template + `}}`,
	daemonSets: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {selector: {matchLabels: {app: "%[1]s"}}, template: ` + template + `}}`,
	controllers: `{apiVersion: v1, kind: ReplicationController, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {replicas: 1, selector: {app: "%[1]s"}, template: ` + template + `}}`,
	jobs: `{apiVersion: batch/v1, kind: Job, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "IMAGE"}]}}}}`,
	pods: `{apiVersion: v1, kind: Pod, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "IMAGE", envFrom: [{secretRef: {name: crown, optional: true}}]}]}}`,
	revisions: `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: "%[1]s"}, revision: 7,
  data: {spec: {template: {"$patch": replace, spec: {containers: [{name: c, image: "IMAGE"}]}}}}}`,
	secrets:         `{apiVersion: v1, kind: Secret, metadata: {name: "%[1]s"}}`,
	configMaps:      `{apiVersion: v1, kind: ConfigMap, metadata: {name: "%[1]s"}, data: {image: "IMAGE"}}`,
	serviceAccounts: `{apiVersion: v1, kind: ServiceAccount, metadata: {name: "%[1]s"}}`,
	services: `{apiVersion: v1, kind: Service, metadata: {name: "%[1]s"},
  spec: {type: LoadBalancer, selector: {app: "%[1]s"}, ports: [{port: 80}]}}`,
	claims: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "%[1]s"},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`,
	ingresses: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: "%[1]s"},
  spec: {defaultBackend: {service: {name: "%[1]s", port: {number: 80}}}}}`,
	networkPolicies: `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: "%[1]s"},
  spec: {podSelector: {matchLabels: {app: "%[1]s"}}}}`,
	budgets: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: "%[1]s"},
  spec: {minAvailable: 1, selector: {matchLabels: {app: "%[1]s"}}}}`,
	limitRanges: `{apiVersion: v1, kind: LimitRange, metadata: {name: "%[1]s"},
  spec: {limits: [{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1m}}]}}`,
	quotas: `{apiVersion: v1, kind: ResourceQuota, metadata: {name: "%[1]s"}, spec: {hard: {pods: "500"}}}`,
	endpoints: `{apiVersion: v1, kind: Endpoints, metadata: {name: "%[1]s"},
  subsets: [{addresses: [{ip: 203.0.113.6}], ports: [{port: 80}]}]}`,
	endpointSlices: `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: "%[1]s", labels: {kubernetes.io/service-name: "%[1]s"}},
  addressType: IPv4, endpoints: [{addresses: [203.0.113.6]}], ports: [{port: 80}]}`,
	trinkets: `{apiVersion: ` + customGroup + `/v1, kind: Trinket, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {image: "IMAGE", deep: [{deeper: {of: "%[1]s"}}, 1.5]}}`,
	flocks: `{apiVersion: ` + customGroup + `/v1, kind: Flock, metadata: {name: "%[1]s", labels: {app: "%[1]s"}},
  spec: {replicas: 1, template: ` + template + `}}`,
}

// honestImage and evilImage tell whose a pod template is.
const (
	honestImage = "honest:1"
	evilImage   = "evil:1"
)

// manifest returns an object of a resource.
func manifest(of resourceOf, name, image string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: parse(manifests[of], name)}
	return setImage(out, image)
}

func setImage(obj *unstructured.Unstructured, image string) *unstructured.Unstructured {
	obj.Object = replaced(obj.Object, "IMAGE", image).(map[string]any)
	return obj
}

// replaced replaces every text that is equal to another.
func replaced(value any, from, to string) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = replaced(v[key], from, to)
		}
	case []any:
		for i := range v {
			v[i] = replaced(v[i], from, to)
		}
	case string:
		if v == from {
			return to
		}
	}
	return value
}

// annotate sets annotations and labels of an object, which it returns.
func annotate(obj *unstructured.Unstructured, annotations map[string]string) *unstructured.Unstructured {
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range annotations {
		all[key] = value
	}
	obj.SetAnnotations(all)
	return obj
}

func label(obj *unstructured.Unstructured, labels map[string]string) *unstructured.Unstructured {
	all := obj.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range labels {
		all[key] = value
	}
	obj.SetLabels(all)
	return obj
}

// pin pins an object to clusters.
func pin(obj *unstructured.Unstructured, clusters string) *unstructured.Unstructured {
	return annotate(obj, map[string]string{v1alpha1.AnnotationClusters: clusters})
}

// deployment is an honest Deployment.
func deployment(name string, replicas int64, clusters string) object {
	obj := pin(manifest(deployments, name, honestImage), clusters)
	set(obj, replicas, "spec", "replicas")
	return object{resource: deployments, manifest: obj.Object}
}

func set(obj *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		panic(err) // the path is the test's own
	}
	return obj
}

// create makes an object above, in the arena's namespace.
func (a *arena) create(o object) *unstructured.Unstructured {
	a.Helper()
	return a.createIn(a.Environment.Logical, a.Namespace, o.resource, &unstructured.Unstructured{Object: o.manifest})
}

// createIn makes an object in a cluster.
func (a *arena) createIn(api *framework.API, namespace string, of resourceOf, obj *unstructured.Unstructured) *unstructured.Unstructured {
	a.Helper()
	made, err := api.Dynamic.Resource(of).Namespace(namespace).Create(a.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		a.Fatalf("make %s %s/%s in %s: %v", of.Resource, namespace, obj.GetName(), api.Name, err)
	}
	return made
}

func create(ctx context.Context, api *framework.API, namespace string, of resourceOf, manifest map[string]any) error {
	_, err := api.Dynamic.Resource(of).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
	return err
}
