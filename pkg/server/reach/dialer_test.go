package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// cluster is the API server of a cluster with pod shop/web-1. Its port 80 repeats what it is told, 81 is silent, others refuse.
type cluster struct {
	server *httptest.Server
	// ended gets a value for each connection that has ended.
	ended chan struct{}
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{ended: make(chan struct{}, 64)}
	c.server = httptest.NewUnstartedServer(c)
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.URL.Path != "/base/api/v1/namespaces/shop/pods/web-1/portforward" {
		http.Error(w, "no such pod", http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, c, "web-1", "uid-web-1", options, time.Hour, time.Minute, portforward.SupportedProtocols)
	c.ended <- struct{}{}
}

// awaitEnds waits until so many connections have ended here.
func (c *cluster) awaitEnds(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-c.ended:
		case <-t.Context().Done():
			t.Fatal("a connection that was closed goes on in the cluster")
		}
	}
}

func (c *cluster) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	switch port {
	case 80:
		_, err := io.Copy(stream, stream)
		return err
	case 81:
		_, err := io.Copy(io.Discard, stream)
		return err
	}
	return fmt.Errorf("dial tcp 127.0.0.1:%d: connection refused", port)
}

// ways are the ways to clusters.
type ways map[string]Cluster

func (w ways) Cluster(name string) (Cluster, error) {
	if _, ok := w[name]; !ok {
		return Cluster{}, errors.New("it has not joined")
	}
	return w[name], nil
}

func (ways) Ready(string) bool { return true }

type withToken struct{ http.RoundTripper }

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return t.RoundTripper.RoundTrip(r)
}

func (c *cluster) way(t *testing.T) Cluster {
	t.Helper()
	host, err := url.Parse(c.server.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	connect := &http.Transport{TLSClientConfig: c.server.Client().Transport.(*http.Transport).TLSClientConfig}
	t.Cleanup(connect.CloseIdleConnections)
	return Cluster{
		Host: host, Transport: apiproxy.NewUpgradeRequestRoundTripper(connect, withToken{apiproxy.MirrorRequest}),
		Client: fake.NewClientset(mirror("web-1", ""), mirror("web-2", "")),
	}
}

func dialer(t *testing.T, w ways, pods ...*corev1.Pod) *Dialer {
	t.Helper()
	store := indexer(t)
	for _, pod := range pods {
		if err := store.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	return &Dialer{
		Pods: corelisters.NewPodLister(store), Clusters: w, Identity: func() (string, error) { return "logical", nil },
		Stock: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("dialled by the stock dialer")
		},
	}
}

func at(port int32) string { return podPort{"shop", "web-1", "uid-web-1", port}.String() }

func TestAPortOfAPodIsForwarded(t *testing.T) {
	east := startCluster(t)
	d := dialer(t, ways{"east": east.way(t)}, mirror("web-1", "east"))
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 8 {
		group.Go(func() error {
			conn, err := d.Dial(ctx, "tcp", at(80))
			if err != nil {
				return err
			}
			defer conn.Close()
			want := strings.Repeat(strconv.Itoa(i), 200_000)
			var writing errgroup.Group
			writing.Go(func() error {
				_, err := io.WriteString(conn, want)
				return err
			})
			got := make([]byte, len(want))
			if _, err := io.ReadFull(conn, got); err != nil {
				return err
			}
			if string(got) != want {
				return fmt.Errorf("connection %d was told something else", i)
			}
			return writing.Wait()
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	east.awaitEnds(t, 8)
	if used := len(d.slots["east"]); used != 0 {
		t.Errorf("%d connections are still counted", used)
	}
}

// TestHTTPOverTLSReachesAPod is how the API server uses it: the pod's certificate is checked here, and the connection is used again.
func TestHTTPOverTLSReachesAPod(t *testing.T) {
	east := startCluster(t)
	dialled := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer server.Close()
	to := &tlsPod{cluster: east, address: strings.TrimPrefix(server.URL, "https://")}
	east.server.Config.Handler = to
	d := dialer(t, ways{"east": east.way(t)}, mirror("web-1", "east"))
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com"
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled++
		return d.Dial(ctx, network, address)
	}
	defer transport.CloseIdleConnections()
	for i := range 3 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+at(443), strings.NewReader("hello "+strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != "hello "+strconv.Itoa(i) {
			t.Errorf("the pod answers %q, %v", body, err)
		}
	}
	if dialled != 1 {
		t.Errorf("dialled %d times, want once", dialled)
	}
	transport.TLSClientConfig.ServerName = "other.test"
	transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at(443), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := transport.RoundTrip(request); err == nil || !strings.Contains(err.Error(), "certificate") {
		if err == nil {
			response.Body.Close()
		}
		t.Errorf("a pod with somebody else's certificate is believed: %v", err)
	}
}

// tlsPod forwards to a real server.
type tlsPod struct {
	*cluster
	address string
}

func (p *tlsPod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, p, "web-1", "uid-web-1", options, time.Hour, time.Minute, portforward.SupportedProtocols)
}

func (p *tlsPod) PortForward(ctx context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	there, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return err
	}
	var copying errgroup.Group
	copying.Go(func() error {
		defer there.Close()
		_, err := io.Copy(there, stream)
		return err
	})
	_, err = io.Copy(stream, there)
	stream.Close()
	return errors.Join(err, copying.Wait())
}

func TestWhatCannotBeReachedSaysWhy(t *testing.T) {
	east := startCluster(t)
	way := east.way(t)
	anonymous := way
	anonymous.Transport = apiproxy.NewUpgradeRequestRoundTripper(east.server.Client().Transport, apiproxy.MirrorRequest)
	successor := mirror("web-1", "east")
	successor.UID = "another"
	replaced, left := way, way
	replaced.Client, left.Client = fake.NewClientset(successor), fake.NewClientset()
	written := mirror("web-1", "east")
	written.Annotations = nil
	for name, test := range map[string]struct {
		ways    ways
		pod     *corev1.Pod
		address string
		want    string
	}{
		"what is no pod":                    {nil, mirror("web-1", "east"), "10.0.0.1:443", "dialled by the stock dialer"},
		"a pod that has gone":               {ways{"east": way}, mirror("web-2", "east"), at(80), "pod shop/web-1, which served the Service, has gone"},
		"a pod with a successor":            {ways{"east": way}, successor, at(80), "pod shop/web-1, which served the Service, has gone"},
		"a pod that is another there":       {ways{"east": replaced}, mirror("web-1", "east"), at(80), `in cluster "east" namespace shop has another one of that name`},
		"a pod that has left":               {ways{"east": left}, mirror("web-1", "east"), at(80), `pods "web-1" not found in cluster "east"`},
		"a pod that only asks to run there": {ways{"east": way}, written, at(80), `forward port 80 of pod shop/web-1 in cluster ""`},
		"a cluster that has left":           {ways{}, mirror("web-1", "east"), at(80), `forward port 80 of pod shop/web-1 in cluster "east": it has not joined`},
		"a pod that is gone there":          {ways{"east": way}, mirror("web-2", "east"), strings.ReplaceAll(at(80), "web-1", "web-2"), `the cluster answers 404 Not Found: no such pod`},
		"a cluster that refuses us":         {ways{"east": anonymous}, mirror("web-1", "east"), at(80), `the cluster answers 401 Unauthorized: who are you?`},
	} {
		t.Run(name, func(t *testing.T) {
			d := dialer(t, test.ways, test.pod)
			conn, err := d.Dial(t.Context(), "tcp", test.address)
			if err == nil {
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
			if used := len(d.slots["east"]); used != 0 {
				t.Errorf("%d connections are still counted", used)
			}
		})
	}
}

// The first read tells, unless the port has refused before there is anything to read from.
func TestAPortThatRefusesIsTold(t *testing.T) {
	d := dialer(t, ways{"east": startCluster(t).way(t)}, mirror("web-1", "east"))
	conn, err := d.Dial(t.Context(), "tcp", at(99))
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	for _, want := range []string{`port 99 of pod shop/web-1 in cluster "east"`, "connection refused"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestAConnectionEndsWhenItsDeadlineHasPassed(t *testing.T) {
	east := startCluster(t)
	d := dialer(t, ways{"east": east.way(t)}, mirror("web-1", "east"))
	conn, err := d.Dial(t.Context(), "tcp", at(81))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want that of a deadline", err)
	}
	conn.Close()
	east.awaitEnds(t, 1)
}

func TestClosingEndsARead(t *testing.T) {
	east := startCluster(t)
	d := dialer(t, ways{"east": east.way(t)}, mirror("web-1", "east"))
	conn, err := d.Dial(t.Context(), "tcp", at(81))
	if err != nil {
		t.Fatal(err)
	}
	var reading errgroup.Group
	reading.Go(func() error {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			return errors.New("something was read")
		}
		return nil
	})
	conn.Close()
	if err := reading.Wait(); err != nil {
		t.Error(err)
	}
	east.awaitEnds(t, 1)
	if used := len(d.slots["east"]); used != 0 {
		t.Errorf("%d connections are still counted", used)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	d := dialer(t, ways{"east": startCluster(t).way(t)}, mirror("web-1", "east"))
	var taken []func()
	for range perCluster {
		release, err := d.slot(t.Context(), "east")
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, release)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Dial(ended, "tcp", at(80)); err == nil || !strings.Contains(err.Error(), "all 1000 connections to pods of the cluster are in use") {
		t.Errorf("error %v", err)
	}
	if release, err := d.slot(t.Context(), "west"); err != nil {
		t.Errorf("another cluster: %v", err)
	} else {
		release()
	}
	taken[0]()
	taken[0]() // counts once
	conn, err := d.Dial(t.Context(), "tcp", at(80))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if used := len(d.slots["east"]); used != perCluster-1 {
		t.Errorf("%d connections are counted, want %d", used, perCluster-1)
	}
}
