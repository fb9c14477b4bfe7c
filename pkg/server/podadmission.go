package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/server/podwebhooks"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

// podAdmission is the webhooks of the logical cluster, for pods that are made elsewhere. Its plugins are those of the server itself.
type podAdmission struct {
	mutating   admission.MutationInterface
	validating admission.ValidationInterface
}

// keep is an admission.DecoratorFunc that changes nothing: it takes hold of the plugins when the server makes its first chain, which is that of the
// built-in kinds.
func (p *podAdmission) keep(plugin admission.Interface, name string) admission.Interface {
	switch {
	case name == mutatingwebhook.PluginName && p.mutating == nil:
		p.mutating, _ = plugin.(admission.MutationInterface)
	case name == validatingwebhook.PluginName && p.validating == nil:
		p.validating, _ = plugin.(admission.ValidationInterface)
	}
	return plugin
}

// creators are the names of the ServiceAccounts as which controllers of a cluster make pods.
var creators = map[schema.GroupVersionKind]string{
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):            "replicaset-controller",
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"):           "statefulset-controller",
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):             "daemon-set-controller",
	batchv1.SchemeGroupVersion.WithKind("Job"):                  "job-controller",
	corev1.SchemeGroupVersion.WithKind("ReplicationController"): "replication-controller",
}

// Admit implements podwebhooks.Admission. Webhooks see what they would on a single cluster: a pod without a name, if the API server is to choose
// one, that is checked with its name once it has been changed.
func (p *podAdmission) Admit(ctx context.Context, pod *corev1.Pod, controller schema.GroupVersionKind, named, dryRun bool,
) (before, after *corev1.Pod, err error) {
	object := &api.Pod{}
	if err := legacyscheme.Scheme.Convert(pod.DeepCopy(), object, nil); err != nil {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("convert the pod: %w", err))
	}
	if before, err = asV1(object); err != nil {
		return nil, nil, err
	}
	creator, known := creators[controller]
	if !known {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("nobody is known who makes pods for a %s", controller.Kind))
	}
	user := serviceaccount.UserInfo(metav1.NamespaceSystem, creator, "")
	interfaces := admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)
	attributes := func(name string) admission.Attributes {
		return admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("Pod"), pod.Namespace, name,
			corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, dryRun, user)
	}
	if p.mutating != nil {
		name := pod.Name
		if !named {
			object.Name, name = "", ""
		}
		a := attributes(name)
		if err := p.mutating.Admit(ctx, a, interfaces); err != nil {
			return nil, nil, err
		}
		if again := a.GetReinvocationContext(); again.ShouldReinvoke() {
			again.SetIsReinvoke()
			if err := p.mutating.Admit(ctx, a, interfaces); err != nil {
				return nil, nil, err
			}
		}
		if !named && object.Name == "" {
			object.Name = pod.Name
		}
	}
	if p.validating != nil {
		object.Status.Phase = api.PodPending
		if err := p.validating.Validate(ctx, attributes(object.Name), interfaces); err != nil {
			return nil, nil, err
		}
	}
	after, err = asV1(object)
	return before, after, err
}

func asV1(object *api.Pod) (*corev1.Pod, error) {
	out := &corev1.Pod{}
	if err := legacyscheme.Scheme.Convert(object.DeepCopy(), out, nil); err != nil { // they share memory otherwise
		return nil, apierrors.NewInternalError(fmt.Errorf("convert the pod: %w", err))
	}
	return out, nil
}

// joinedClusters are the clusters that have joined, once somebody knows them.
type joinedClusters struct {
	// lister is set before the server serves.
	lister listers.ClusterLister
}

func (j *joinedClusters) all() []*v1alpha1.Cluster {
	if j.lister == nil {
		return nil
	}
	all, _ := j.lister.List(labels.Everything()) // listing from a cache cannot fail
	return all
}

// podAskers knows which clusters may ask about pods, and the pods that they ask about.
type podAskers struct {
	secrets corelisters.SecretLister
	// joined and upstream are set before the server serves.
	joined   listers.ClusterLister
	upstream *syncer.Upstream
}

// answerClusters has generic answer clusters that ask about pods, before anybody logs in: they do so by a token in the path.
func answerClusters(generic *genericapiserver.Config, informers informers.SharedInformerFactory, admission *podAdmission) *podAskers {
	askers := &podAskers{secrets: informers.Core().V1().Secrets().Lister()}
	build := generic.BuildHandlerChainFunc
	generic.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return podwebhooks.New(askers, admission, build(api, c))
	}
	return askers
}

// Accepts implements podwebhooks.LogicalCluster.
func (p *podAskers) Accepts(cluster, token string) bool {
	joined, err := p.joined.Get(cluster)
	if err != nil || !joined.Spec.Allows.PodWebhooks || joined.Spec.Connection.SecretRef == nil {
		return false
	}
	ref := joined.Spec.Connection.SecretRef
	secret, err := p.secrets.Secrets(ref.Namespace).Get(ref.Name)
	return err == nil && podhooks.Accepts(secret.Data[podhooks.TokensKey], token, time.Now())
}

// Newcomer implements podwebhooks.LogicalCluster.
func (p *podAskers) Newcomer(ctx context.Context, cluster string, pod *corev1.Pod) (*syncer.Newcomer, error) {
	s, ok := p.upstream.Syncer(cluster)
	if !ok {
		return nil, fmt.Errorf("cluster %q is not connected to this process", cluster)
	}
	return s.Newcomer(ctx, pod)
}
