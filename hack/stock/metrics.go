package stock

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/utils/ptr"
)

const (
	metricsName = "metrics-server"
	// metricsHost is how the API server expects metrics-server to show itself.
	metricsHost = metricsName + "." + metav1.NamespaceSystem + ".svc"
	// metricsPathAnnotation on a node tells metrics-server where to scrape it. All nodes of a cluster share one kubelet endpoint.
	metricsPathAnnotation = "metrics.k8s.io/resource-metrics-path"
	// metricsResolution is the shortest that metrics-server accepts.
	metricsResolution = "10s"
	// scrapeTimeout must be shorter than the resolution.
	scrapeTimeout = "5s"
)

// metricsServerArgs are those of metrics-server's own manifest, but for the addresses, the keys and the resolution. It shows itself to
// the kubelet endpoints with the certificate of the API server.
func (l *layout) metricsServerArgs() []string {
	return l.servingArgs("metrics-server", l.ports.metricsServer,
		"--client-ca-file="+l.pki.cert("ca"),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-use-node-status-port",
		"--kubelet-certificate-authority="+l.pki.cert("ca"),
		"--kubelet-client-certificate="+l.pki.cert("apiserver-kubelet-client"),
		"--kubelet-client-key="+l.pki.key("apiserver-kubelet-client"),
		"--metric-resolution="+metricsResolution,
		"--kubelet-request-timeout="+scrapeTimeout,
	)
}

// startMetrics starts metrics-server and tells the API server where it is.
func (c *Cluster) startMetrics(ctx context.Context) error {
	// It does not start without knowing whom to believe who asks.
	err := c.until(ctx, "wait for the API server to say how extension servers know it", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if err := c.run(MetricsServer); err != nil {
		return err
	}
	if err := c.waitHealthy(ctx, MetricsServer); err != nil {
		return err
	}
	return c.registerMetrics(ctx)
}

// registerMetrics makes the API server ask metrics-server. Nothing routes Service addresses in a stock cluster, so that the Service is
// but another name of the loopback address.
func (c *Cluster) registerMetrics(ctx context.Context) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: metricsName, Namespace: metav1.NamespaceSystem},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"},
	}
	if _, err := c.client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register metrics-server in cluster %q: %w", c.options.Name, err)
	}
	authority, err := c.layout.pki.ca.pair()
	if err != nil {
		return err
	}
	client, err := aggregator.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("make the client of cluster %q: %w", c.options.Name, err)
	}
	_, err = client.ApiregistrationV1().APIServices().Create(ctx, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1beta1.metrics.k8s.io"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "metrics.k8s.io", Version: "v1beta1", GroupPriorityMinimum: 100, VersionPriority: 100,
			CABundle: authority.cert,
			Service: &apiregistrationv1.ServiceReference{
				Name: metricsName, Namespace: service.Namespace, Port: ptr.To(int32(c.layout.ports.metricsServer)),
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("register metrics-server in cluster %q: %w", c.options.Name, err)
	}
	return nil
}
