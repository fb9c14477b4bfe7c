package datapath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/hack/stock/datapath/pods"
	"github.com/manifold-dev/manifold/hack/stock/datapath/services"
)

// podIP is an address that differs between processes that test at the same time.
func podIP(last int) string { return fmt.Sprintf("10.253.%d.%d", os.Getpid()%250, last) }

// listen has a server at a pod's address that says where it is.
func listen(t *testing.T, ip string) {
	t.Helper()
	at, err := pods.Listener(netip.MustParseAddr(ip), 8080)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", at.String())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", ip, r.Host, r.Header.Get("X-Forwarded-For"))
	}))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}

// networkOf is a network of one cluster that has the Service "web" with the endpoints.
func networkOf(apart bool, change func(*corev1.Service), ips ...string) *Network {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if change != nil {
		change(service)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: ptr.To(int32(8080))}},
	}
	for _, ip := range ips {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip}, NodeName: ptr.To("node")})
	}
	m := &member{Member: Member{Name: "east", Pods: netip.MustParsePrefix("10.250.0.0/16")}}
	m.state.Store(services.NewState([]*corev1.Service{service}, []*discoveryv1.EndpointSlice{slice}))
	return &Network{apart: apart, members: map[string]*member{"east": m}}
}

func clientOf(t *testing.T, n *Network) *Client {
	t.Helper()
	c, err := n.Client(From{Cluster: "east", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(body), err
}

func TestConnectionsAreSpreadOverTheEndpointsOfAService(t *testing.T) {
	listen(t, podIP(1))
	listen(t, podIP(2))
	client := clientOf(t, networkOf(false, nil, podIP(1), podIP(2)))
	for _, url := range []string{"http://web/", "http://10.96.0.10/", "http://web.shop.svc.cluster.local/"} {
		seen := map[string]int{}
		for range 40 {
			answer, err := get(client.HTTP(false), url)
			if err != nil {
				t.Fatal(err)
			}
			seen[strings.Fields(answer)[0]]++
		}
		if len(seen) != 2 {
			t.Errorf("%s is answered by %v, want both", url, seen)
		}
	}
	if answer, err := get(client.HTTP(false), "http://"+podIP(2)+":8080/"); err != nil || !strings.HasPrefix(answer, podIP(2)) {
		t.Errorf("a pod's own address is answered with %q, %v", answer, err)
	}
}

func TestAConnectionThatIsKeptStaysWhereItIs(t *testing.T) {
	listen(t, podIP(3))
	listen(t, podIP(4))
	client := clientOf(t, networkOf(false, nil, podIP(3), podIP(4))).HTTP(true)
	defer client.CloseIdleConnections()
	first, err := get(client, "http://web/")
	for range 20 {
		if again, err2 := get(client, "http://web/"); err != nil || err2 != nil || again != first {
			t.Fatalf("%q, %v, and then %q, %v", first, err, again, err2)
		}
	}
}

func TestAClientKeepsItsEndpointByAffinity(t *testing.T) {
	var ips []string
	for i := range 8 {
		ips = append(ips, podIP(10+i))
		listen(t, podIP(10+i))
	}
	network := networkOf(false, func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, ips...)
	given := map[string]bool{}
	for range 20 {
		client := clientOf(t, network)
		first, err := get(client.HTTP(false), "http://web/")
		if err != nil {
			t.Fatal(err)
		}
		given[first] = true
		for range 5 {
			if again, err := get(client.HTTP(false), "http://web/"); err != nil || again != first {
				t.Errorf("a client is answered with %q and then %q, %v", first, again, err)
			}
		}
	}
	if len(given) < 2 {
		t.Errorf("20 clients are all answered with %v", given)
	}
}

func TestWhatLeadsNowhereIsSaid(t *testing.T) {
	local := func(s *corev1.Service) {
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
	}
	tests := map[string]struct {
		network *Network
		address string
		want    error
	}{
		"a Service without endpoints refuses":          {network: networkOf(false, nil), address: "web:80", want: syscall.ECONNREFUSED},
		"so does a pod that does not listen":           {network: networkOf(false, nil), address: podIP(30) + ":8080", want: syscall.ECONNREFUSED},
		"an address of the world is not dialled":       {network: networkOf(false, nil), address: "203.0.113.1:80", want: syscall.EHOSTUNREACH},
		"nor one of a Service that there is not":       {network: networkOf(false, nil), address: "10.96.0.99:80", want: syscall.EHOSTUNREACH},
		"clusters that are apart do not reach another": {network: networkOf(true, nil, podIP(31)), address: "web:80", want: syscall.EHOSTUNREACH},
		"a policy drops what would leave the node":     {network: networkOf(false, local, podIP(32)), address: "web:80", want: context.DeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := clientOf(t, tt.network).DialContext(ctx, "tcp", tt.address); !errors.Is(err, tt.want) {
				t.Errorf("DialContext(): %v, want %v", err, tt.want)
			}
		})
	}
	if _, err := networkOf(false, nil).Client(From{Cluster: "nowhere"}); err == nil {
		t.Error("there is a client in a cluster that there is not")
	}
}

func TestAProgramReachesPodsByAProxy(t *testing.T) {
	listen(t, podIP(40))
	proxy, err := clientOf(t, networkOf(false, nil, podIP(40))).StartProxy()
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Stop()
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(through)}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, "http://"+podIP(40)+":8080/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "shop.example.com"
	request.Header.Set("X-Forwarded-For", "198.51.100.7")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if want := podIP(40) + " shop.example.com 198.51.100.7"; err != nil || string(body) != want {
		t.Errorf("the pod was asked as %q, %v, want %q", body, err, want)
	}
	for url, want := range map[string]string{
		"http://web/": podIP(40), "http://nowhere/": "host unreachable", "http://" + podIP(41) + "/": "connection refused",
	} {
		answer, err := get(&http.Client{Transport: transport}, url)
		if !strings.Contains(fmt.Sprint(answer, err), want) {
			t.Errorf("%s is answered with %q, %v, want %q", url, answer, err, want)
		}
	}
	conn, err := net.Dial("tcp4", strings.TrimPrefix(proxy.URL, "socks5://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\n\r\n")
	if answer, err := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("what speaks another protocol is answered with %q, %v", answer, err)
	}
}
