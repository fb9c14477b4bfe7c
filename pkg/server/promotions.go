package server

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/promotions"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	webhooks "github.com/manifold-dev/manifold/pkg/server/promotions"
)

// Promotions says how CI is heard about promotions.
type Promotions struct {
	// WebhookAddress is where calls of webhooks are answered, HOST:PORT. Empty means nowhere.
	WebhookAddress string
}

func (p *Promotions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.WebhookAddress, "promotion-webhook-address", p.WebhookAddress,
		"Address, HOST:PORT, at which the webhooks of pipelines are answered, by TLS with the serving certificate: POST /promotion/NAMESPACE/PIPELINE/ENVIRONMENT "+
			"and /approval/NAMESPACE/PIPELINE/ENVIRONMENT/REVISION. Empty answers none.")
}

func (p *Promotions) validate() error {
	if p.WebhookAddress == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(p.WebhookAddress); err != nil {
		return fmt.Errorf("--promotion-webhook-address: %w", err)
	}
	return nil
}

// newPromotions makes the controller of promotions. It has nothing to do until the kinds of pipelines are defined.
func (m *controllers) newPromotions(c CompletedOptions) (*promotions.Controller, error) {
	config := asJSON(m.identities.As(v1alpha1.PromotionsUser))
	client, mapper, err := anyKind(config)
	if err != nil {
		return nil, err
	}
	secrets := m.informers.Core().V1().Secrets()
	out := promotions.New(promotions.Options{
		Kinds: m.custom.Objects(), Dynamic: client, Events: m.clients[v1alpha1.PromotionsUser].kube.CoreV1(), Objects: objectClients(config),
		Mapper:  mapper,
		Pulls:   pulls.New(m.repositories, c.outgoing.Policy(), clock.RealClock{}),
		May:     m.may,
		Secrets: secrets.Lister(), SecretsSynced: secrets.Informer().HasSynced, Recorder: m.recorder(scheme.Scheme), Queues: m.queues,
	})
	changed := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			out.SecretChanged(name)
		}
	}
	if _, err := secrets.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: changed,
	}); err != nil {
		return nil, fmt.Errorf("watch the Secrets that pipelines go by: %w", err)
	}
	return out, nil
}

// webhookDrain is how long calls may take to end when the server stops.
const webhookDrain = 5 * time.Second

// promotionWebhooks answers calls of webhooks on a port of its own, with the certificate of the server.
func promotionWebhooks(c CompletedOptions, serving *genericapiserver.SecureServingInfo, of *promotions.Controller) part {
	return part{"webhooks for promotions", func(ctx context.Context) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.promotions.WebhookAddress)
		if err != nil {
			return fmt.Errorf("--promotion-webhook-address: %w", err)
		}
		files := c.kube.SecureServing.ServerCert.CertKey
		certificate, err := dynamiccertificates.NewDynamicServingContentFromFiles("promotion-webhooks", files.CertFile, files.KeyFile)
		if err != nil {
			_ = listener.Close()
			return err
		}
		own := *serving
		own.Listener, own.Cert, own.ClientCA = listener, certificate, nil // who calls shows no certificate
		klog.FromContext(ctx).Info("Answering webhooks of pipelines", "address", listener.Addr().String())
		stopped, _, err := own.Serve(webhooks.New(of, clock.RealClock{}), webhookDrain, ctx.Done())
		if err != nil {
			_ = listener.Close()
			return err
		}
		<-stopped
		return nil
	}}
}
