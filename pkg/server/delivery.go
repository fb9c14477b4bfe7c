package server

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/utils/clock"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldscheme "github.com/manifold-dev/manifold/generated/clientset/versioned/scheme"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/gates"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/releases"
	"github.com/manifold-dev/manifold/pkg/delivery/measure"
	"github.com/manifold-dev/manifold/pkg/delivery/scripts"
)

// kindsKnown is for how long the kinds of the logical cluster are remembered. One that is missing is looked for at once.
const kindsKnown = 5 * time.Minute

// newDelivery makes the controllers of delivery.
func (m *controllers) newDelivery(c CompletedOptions) ([]part, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, manifoldscheme.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	config := asJSON(m.identities.As(v1alpha1.DeliveryUser))
	routes, mapper, err := anyKind(config)
	if err != nil {
		return nil, err
	}
	o := releases.Options{
		Kube: m.informers, Manifold: m.own, Contents: m.contents, Complete: legacyscheme.Scheme.Default,
		Client: m.clients[v1alpha1.DeliveryUser].manifold, Objects: objectClients(config), Mapper: mapper, Customs: m.custom.Objects(), ClusterScoped: m.clusterScoped, Routes: objects.NewRoutes(routes, mapper),
		Recorder: m.recorder(known),
		Grace:    m.grace, Queues: m.queues, Drift: &m.drift,
		Measurer: m.newMeasurer(c), Scripts: m.newScripts(config),
	}
	if m.plugins != nil {
		o.Calls, o.Planning = m.plugins.Calls, m.plugins.Planning
	}
	controller, err := releases.New(o)
	if err != nil {
		return nil, err
	}
	if m.plugins != nil {
		m.plugins.Host.Changed(controller.PluginChanged)
	}
	gates, err := gates.New(gates.Options{
		Kube: m.informers, Applications: m.own.Delivery().V1alpha1().Applications(), Client: routes, Recorder: m.recorder(known), Queues: m.queues,
	})
	if err != nil {
		return nil, err
	}
	return []part{
		{"releases", controller.Run},
		{"objects that wait for a release", gates.Run},
		{"objects of applications in no namespace", m.clusterScoped.Run},
		{"kinds of applications", func(ctx context.Context) error {
			wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, kindsKnown)
			return nil
		}},
	}, nil
}

func (m *controllers) newMeasurer(c CompletedOptions) *measure.Measurer {
	core, apps := m.informers.Core().V1(), m.informers.Apps().V1()
	return measure.New(measure.Options{
		Policy: c.outgoing.Policy(), Secrets: core.Secrets().Lister(), Releases: m.own.Delivery().V1alpha1().Releases().Lister(),
		Pods: core.Pods().Lister(), ReplicaSets: apps.ReplicaSets().Lister(), Deployments: apps.Deployments().Lister(),
		StatefulSets: apps.StatefulSets().Lister(), Clock: clock.RealClock{},
	})
}

// anyKind reaches objects of kinds that are known at run time alone, and finds their resources.
func anyKind(config *rest.Config) (dynamic.Interface, meta.ResettableRESTMapper, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)), nil
}

// objectClients returns who writes the objects of applications.
func objectClients(config *rest.Config) objects.Clients {
	return func(account objects.Account) (dynamic.Interface, error) {
		return dynamic.NewForConfig(impersonating(config, account.Namespace, account.ServiceAccount))
	}
}

// impersonating is a configuration for what is done by the rights of a ServiceAccount, itself if none is named.
func impersonating(config *rest.Config, namespace, account string) *rest.Config {
	if account == "" {
		return config
	}
	as := rest.CopyConfig(config)
	as.Impersonate.UserName = serviceaccount.MakeUsername(namespace, account)
	return as
}

// newScripts returns who runs scripts, with the rights of the ServiceAccount that an application names.
func (m *controllers) newScripts(config *rest.Config) *scripts.Scripts {
	return scripts.New(scripts.Options{
		Jobs: m.informers.Batch().V1().Jobs().Lister(), Pods: m.informers.Core().V1().Pods().Lister(),
		Revisions: m.own.Delivery().V1alpha1().ApplicationRevisions().Lister(),
		Client: func(app *delivery.Application) (kubernetes.Interface, error) {
			if app.Spec.ServiceAccountName == "" {
				return m.clients[v1alpha1.DeliveryUser].kube, nil
			}
			return kubernetes.NewForConfig(impersonating(config, app.Namespace, app.Spec.ServiceAccountName))
		},
	})
}

// recorder writes events about objects of the kinds that a scheme knows.
func (m *controllers) recorder(known *runtime.Scheme) record.EventRecorder {
	return m.events.NewRecorder(known, corev1.EventSource{Component: "manifold"})
}
