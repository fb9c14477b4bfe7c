package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// published is the world outside as it finds an Ingress: by the addresses that the logical cluster shows, as external-dns publishes them.
type published struct {
	client          kubernetes.Interface
	namespace, name string
	cancel          context.CancelFunc
	running         sync.WaitGroup

	mu sync.Mutex
	// addresses are guarded by mu.
	addresses []string
}

// timeToLive is how long the world believes in an address.
const timeToLive = time.Second

func newPublished(client kubernetes.Interface, namespace, name string) *published {
	return &published{client: client, namespace: namespace, name: name}
}

// start looks up the addresses over and over, until stop.
func (p *published) start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(ctx)
	p.running.Go(func() {
		tick := time.NewTicker(timeToLive)
		defer tick.Stop()
		for {
			p.look(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

func (p *published) stop() {
	p.cancel()
	p.running.Wait()
}

// look takes over what is published. A server that does not answer changes nothing, as with DNS.
func (p *published) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*timeToLive)
	defer cancel()
	ingress, err := p.client.NetworkingV1().Ingresses(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return
	}
	var found []string
	for _, point := range ingress.Status.LoadBalancer.Ingress {
		if point.IP != "" {
			found = append(found, point.IP)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addresses = found
}

// dial connects to one of the addresses, or to the next when the first does not listen.
func (p *published) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	addresses := append([]string{}, p.addresses...)
	p.mu.Unlock()
	if len(addresses) == 0 {
		return nil, fmt.Errorf("ingress %s/%s has no address", p.namespace, p.name)
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	var errs []error
	for _, ip := range addresses {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", addressOf(ip))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
