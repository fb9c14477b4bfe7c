package connection

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/pkg/clusters/bounds"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// dialTo returns a connection to a server of the test, over TLS and HTTP/2, and by what that went beyond a bound.
func dialTo(t *testing.T, handler http.HandlerFunc) (c *Connection, exceeded func() error) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var last atomic.Pointer[error]
	c, err := dial("east", &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, Options{UserAgent: "test", Limits: bounds.Options{
		MostBytes: 20 << 20, Exceeded: func(err error) { last.Store(&err) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.HangUp(); c.Close() })
	return c, func() error {
		if err := last.Load(); err != nil {
			return *err
		}
		return nil
	}
}

const (
	jsonType     = kruntime.ContentTypeJSON
	protobufType = kruntime.ContentTypeProtobuf
)

// answering sends a header and then what a function writes, until the other side has enough.
func answering(media string, write func(w io.Writer)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		write(w)
	}
}

// endless writes a text again and again until that fails.
func endless(begin, part string) func(w io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, begin)
		for many := strings.Repeat(part, max(1, 4096/len(part))); err == nil; {
			_, err = io.WriteString(w, many)
		}
	}
}

func protobufOf(t *testing.T, object kruntime.Object) string {
	t.Helper()
	info, ok := kruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufType)
	if !ok {
		t.Fatal("protobuf is not known")
	}
	data, err := kruntime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func listPods(ctx context.Context, c *Connection) error {
	_, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	return err
}

func getPod(ctx context.Context, c *Connection) error {
	_, err := c.Client.CoreV1().Pods("shop").Get(ctx, "web", metav1.GetOptions{})
	return err
}

func getWidget(ctx context.Context, c *Connection) error {
	_, err := c.Dynamic.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("shop").
		Get(ctx, "web", metav1.GetOptions{})
	return err
}

func serverVersion(_ context.Context, c *Connection) error {
	_, err := c.Client.Discovery().ServerVersion()
	return err
}

// watchPods reads events until one says that the watch is at its end.
func watchPods(ctx context.Context, c *Connection) error {
	w, err := c.Client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return fmt.Errorf("%v", event.Object)
		}
	}
	return errors.New("it has ended")
}

const widgetBegin = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"web","namespace":"shop"},"spec":`

func TestWhatAClusterAnswersIsBounded(t *testing.T) {
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		endless(`{"kind":"PodList","apiVersion":"v1","items":[],"x":"`, " ")(packed)
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		ask    func(context.Context, *Connection) error
		// told is what the condition says, "" for an error that tells nobody.
		told string
	}{
		"a list without an end":          {answering(jsonType, endless(`{"kind":"PodList","items":[`, `{},`)), listPods, "sends a list, or a page of one, of more than 32Mi"},
		"one in protobuf":                {answering(protobufType, endless("k8s\x00", "\x00")), listPods, "sends a list, or a page of one, of more than 32Mi"},
		"one that is a bomb of gzip":     {bomb, listPods, "sends a list, or a page of one, of more than 32Mi"},
		"an object without an end":       {answering(jsonType, endless(`{"kind":"Pod","x":"`, "x")), getPod, "sends an answer about one object of more than 8Mi"},
		"an error without an end":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict); endless("", "no")(w) }, getPod, "sends an error of more than 1Mi"},
		"a version without an end":       {answering(jsonType, endless(`{"x":"`, "x")), serverVersion, "sends a list of what it serves of more than 16Mi"},
		"a length that is announced":     {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99999999999") }, getPod, "of more than 8Mi"},
		"an event without an end":        {answering(jsonType, endless(`{"type":"ADDED","object":{"x":"`, "x")), watchPods, "sends an event of a watch of more than 4Mi"},
		"a frame of 4 GiB":               {answering(protobufType+";stream=watch", endless("\xff\xff\xff\xff", "x")), watchPods, "sends an event of a watch of more than 4Mi"},
		"JSON 10,000 deep":               {answering(jsonType, endless(widgetBegin, `{"a":`)), getWidget, "nested deeper than 500 levels"},
		"lists without end in a watch":   {answering(jsonType, endless(`{"type":"ADDED","object":`, `[`)), watchPods, "sends an event of a watch of more than 4Mi"},
		"YAML":                           {answering("application/yaml", endless("a: &a [x]\nb: [*a]\n", "c: [*a]\n")), getPod, `answers as "application/yaml"`},
		"a watch that is a page of HTML": {answering("text/html", endless("<html>", "<br>")), watchPods, `answers as "text/html"`},
		"headers without an end": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20_000 {
				w.Header().Set(fmt.Sprintf("X-Header-%d", i), strings.Repeat("x", 100))
			}
		}, getPod, ""},
		"a list of another kind, cut short": {answering(protobufType, func(w io.Writer) { _, _ = io.WriteString(w, "k8s\x00\x0a\xff\xff\xff\xff\x0f") }), listPods, ""},
		"a kind that is another":            {answering(jsonType, func(w io.Writer) { _, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","spec":"text"}`) }), getPod, ""},
		"a body that is cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"kind":"Pod"`)
		}, getPod, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, exceeded := dialTo(t, test.answer)
			err := test.ask(t.Context(), c)
			if err == nil {
				t.Fatal("it was taken")
			}
			switch told := exceeded(); {
			case test.told == "" && told != nil:
				t.Errorf("told %v, want nothing", told)
			case test.told != "" && (told == nil || !strings.Contains(told.Error(), test.told)):
				t.Errorf("told %v (%v), want %q", told, err, test.told)
			}
		})
	}
}

func TestAnObjectThatIsNestedTooDeepIsCutAndTheOthersAreRead(t *testing.T) {
	deep := widgetBegin + strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9001)
	other := strings.Replace(widgetBegin, "web", "other", 1) + `{"a":"b"}}`
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for name, test := range map[string]struct {
		answer string
		read   func(context.Context, *Connection) ([]unstructured.Unstructured, error)
	}{
		"in a list": {`{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{},"items":[` + deep + "," + other + "]}",
			func(ctx context.Context, c *Connection) ([]unstructured.Unstructured, error) {
				all, err := c.Dynamic.Resource(widgets).List(ctx, metav1.ListOptions{})
				if err != nil {
					return nil, err
				}
				return all.Items, nil
			}},
		"in a watch": {`{"type":"ADDED","object":` + deep + "}\n" + `{"type":"ADDED","object":` + other + "}\n",
			func(ctx context.Context, c *Connection) (all []unstructured.Unstructured, err error) {
				w, err := c.Dynamic.Resource(widgets).Watch(ctx, metav1.ListOptions{})
				if err != nil {
					return nil, err
				}
				defer w.Stop()
				for event := range w.ResultChan() {
					if event.Type != watch.Added {
						return nil, fmt.Errorf("%v", event.Object)
					}
					all = append(all, *event.Object.(*unstructured.Unstructured))
				}
				return all, nil
			}},
	} {
		t.Run(name, func(t *testing.T) {
			c, exceeded := dialTo(t, answering(jsonType, func(w io.Writer) { _, _ = io.WriteString(w, test.answer) }))
			all, err := test.read(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 2 || all[0].GetName() != "web" || !projection.Deeper(all[0].Object["spec"], projection.DeepestContent) ||
				all[1].GetName() != "other" || !reflect.DeepEqual(all[1].Object["spec"], map[string]any{"a": "b"}) {
				t.Errorf("%d were read: %.200v", len(all), all)
			}
			if told := exceeded(); told == nil || !strings.Contains(told.Error(), "sends widgets.example.com that are nested deeper than 500 levels, of which the rest is left out") {
				t.Errorf("told %v", told)
			}
		})
	}
}

func TestWhatAnHonestClusterAnswersPasses(t *testing.T) {
	many := &corev1.PodList{}
	for i := range 500 {
		many.Items = append(many.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Status: corev1.PodStatus{Message: strings.Repeat("x", 20_000)}})
	}
	pages := protobufOf(t, many)
	big := protobufOf(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: corev1.PodStatus{Message: strings.Repeat("x", 3<<20/2)}})
	deep := widgetBegin + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 101)
	for name, test := range map[string]struct {
		media, answer string
		ask           func(context.Context, *Connection) error
	}{
		"a page of 500 pods of 20 kB":   {protobufType, pages, listPods},
		"a pod as long as etcd takes":   {protobufType, big, getPod},
		"an object of a hundred levels": {jsonType, deep, getWidget},
		"a version":                     {jsonType, `{"gitVersion":"v1.37.1"}`, serverVersion},
	} {
		t.Run(name, func(t *testing.T) {
			c, exceeded := dialTo(t, answering(test.media, func(w io.Writer) { _, _ = io.WriteString(w, test.answer) }))
			if err := errors.Join(test.ask(t.Context(), c), exceeded()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPagesOfAListAreBoundedTogether(t *testing.T) {
	page := protobufOf(t, &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.PodStatus{Message: strings.Repeat("x", 1<<20)}},
	}})
	c, exceeded := dialTo(t, answering(protobufType, func(w io.Writer) { _, _ = io.WriteString(w, page) }))
	read := func(options metav1.ListOptions) int {
		for pages := range 100 {
			list, err := c.Client.CoreV1().Pods("").List(t.Context(), options)
			if err != nil {
				return pages
			}
			options.Continue = list.Continue
		}
		return 100
	}
	for _, what := range []string{"a list", "another attempt"} {
		if got, want := read(metav1.ListOptions{Limit: 500}), 19; got != want {
			t.Errorf("%s takes %d pages, want %d of the 20 MiB", what, got, want)
		}
	}
	if told := exceeded(); told == nil || !strings.Contains(told.Error(), "more than 20Mi of objects") {
		t.Errorf("told %v", told)
	}
}

// What nobody has read yet waits at the cluster. A storm fills neither our buffers nor those of others.
func TestWhatIsNotReadWaitsAtTheCluster(t *testing.T) {
	var sent atomic.Int64
	stuck := make(chan struct{})
	c, _ := dialTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			w.Header().Set("Content-Type", jsonType)
			_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}`)
			return
		}
		w.Header().Set("Content-Type", jsonType)
		event := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 3<<19) + `"}}}}`
		for r.Context().Err() == nil {
			n, err := io.WriteString(w, event)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const watches = 10
	for range watches {
		w, err := c.Client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	// The watches are not read: each may be as far as one event that is decoded, and its buffers.
	go func() {
		for last := int64(-1); last != sent.Load(); {
			last = sent.Load()
			for range 20 {
				if err := getPod(t.Context(), c); err != nil {
					break
				}
			}
		}
		close(stuck)
	}()
	<-stuck
	if err := getPod(t.Context(), c); err != nil {
		t.Errorf("other requests do not get through: %v", err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	const each = 16 << 20 // events of 1.5 MiB: one that waits, one that is decoded, buffers of twice the size, on both sides of the wire
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > watches*each {
		t.Errorf("%d MiB are taken by %d watches that nobody reads, want no more than %d each", grown>>20, watches, each>>20)
	}
}

// BenchmarkAListOf150MiB tells what reading it takes, as a client does that nothing bounds, and as a connection does.
func BenchmarkAListOf150MiB(b *testing.B) {
	item := `{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 1<<20) + `"}}}`
	server := httptest.NewUnstartedServer(answering(jsonType, func(w io.Writer) {
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[`+item)
		for range 149 {
			_, _ = io.WriteString(w, ","+item)
		}
		_, _ = io.WriteString(w, `]}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	bounded, err := dial("east", config, Options{UserAgent: "test"})
	if err != nil {
		b.Fatal(err)
	}
	for name, client := range map[string]kubernetes.Interface{"unbounded": kubernetes.NewForConfigOrDie(config), "bounded": bounded.Client} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = client.CoreV1().Pods("").List(b.Context(), metav1.ListOptions{}) // one of them fails, which a test looks at
			}
		})
	}
}
