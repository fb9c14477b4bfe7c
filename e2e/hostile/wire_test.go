package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// awaitWest waits until a condition of Cluster west is as claimed.
func (a *arena) awaitWest(claim, of string, is func(*metav1.Condition) bool) {
	a.Helper()
	framework.Await(a.Logical, "west", claim, func(c *v1alpha1.Cluster) bool {
		condition := meta.FindStatusCondition(c.Status.Conditions, of)
		return condition != nil && is(condition)
	})
}

// well waits until west is ready and its syncer runs.
func (a *arena) well() {
	a.Helper()
	for _, of := range []string{v1alpha1.ClusterReady, v1alpha1.ClusterSyncerRunning} {
		a.awaitWest("is well", of, func(c *metav1.Condition) bool { return c.Status == metav1.ConditionTrue })
	}
}

// ofSyncer reports whether a request is Manifold's.
func ofSyncer(a *arena) func(*liar.Request) bool {
	return func(r *liar.Request) bool { return !a.west.IsAdmin(r) }
}

// TestRedirectsAreNotFollowed has west send every request elsewhere: to a server of Mallory's, with TLS and without, and to east. All codes of
// redirects come, whatever is asked.
func TestRedirectsAreNotFollowed(t *testing.T) {
	a := enter(t)
	pod := a.podsOf("own")[0].Name
	var got sync.Map
	elsewhere := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Store(r.Method+" "+r.URL.Path+" with "+r.Header.Get("Authorization"), true)
	})
	plain, secure := httptest.NewServer(elsewhere), httptest.NewTLSServer(elsewhere)
	defer plain.Close()
	defer secure.Close()
	targets := []string{plain.URL, secure.URL, a.Environment.Physical["east"].Config.Host}
	codes := []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}
	var sent atomic.Int64
	before := len(a.east.Sent(func(s liar.Sent) bool { return strings.Contains(s.Path, a.Namespace) }))
	stop := a.west.Answer(ofSyncer(a), func(w http.ResponseWriter, r *http.Request) {
		n := int(sent.Add(1))
		http.Redirect(w, r, targets[n%len(targets)]+r.URL.RequestURI(), codes[n/len(targets)%len(codes)])
	})
	defer stop()
	for _, of := range mirrored(t) {
		a.west.End(of.GroupResource())
	}
	a.west.End(namespaces.GroupResource())
	a.awaitWest("is told", v1alpha1.ClusterReady, func(c *metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "redirect")
	})
	// What users ask of pods there, and have changed or deleted there.
	for _, args := range [][]string{
		{"logs", pod}, {"exec", pod, "--", "true"}, {"get", "--raw", "/api/v1/namespaces/" + a.Namespace + "/pods/" + pod + "/proxy/"},
		{"label", "pod", pod, "a=b"},
	} {
		if result := a.Logical.Try(args...); result.Code == 0 {
			t.Errorf("%v succeeds: %s", args, result)
		}
	}
	a.Logical.Kubectl("delete", "deployment", "own", "--wait=false")
	a.Logical.Kubectl("create", "configmap", "later")
	a.Logical.Poll("all kinds of redirects were sent", func() error {
		if n := sent.Load(); int(n) < 2*len(targets)*len(codes) {
			return fmt.Errorf("%d were", n)
		}
		return nil
	})
	name := a.unique("canary")
	a.create(deployment(name, 1, "east"))
	framework.Await(a.Logical, name, "runs", expect.Available(1))
	got.Range(func(key, _ any) bool {
		t.Errorf("elsewhere got %s", key)
		return true
	})
	for _, s := range a.east.Sent(func(s liar.Sent) bool { return strings.Contains(s.Path, a.Namespace+"/pods/"+pod) }) {
		t.Errorf("east was sent %s %s, which was for west (%d before)", s.Method, s.Path, before)
	}
	condition := ""
	if west, err := a.Environment.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(t.Context(), "west", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	} else if ready := meta.FindStatusCondition(west.Status.Conditions, v1alpha1.ClusterReady); ready != nil {
		condition = ready.Message
	}
	for _, token := range a.west.Tokens() {
		if strings.Contains(condition, token) {
			t.Error("the condition tells a token")
		}
	}
	stop()
	a.well()
	framework.AwaitGone[*appsv1.Deployment](a.Logical, "own")
	a.unharmed()
}

// nonsense is what west answers to whoever lists or watches a resource, each of another.
var nonsense = map[resourceOf]struct {
	what   string
	answer func(w http.ResponseWriter, r *http.Request)
}{
	configMaps: {"a list of 150 MiB", func(w http.ResponseWriter, r *http.Request) {
		inEach("v1", "ConfigMap", endless(storm(150), func(i int) []byte {
			return fmt.Appendf(nil, `{"metadata":{"name":"big-%d","namespace":"default","resourceVersion":"1"},"data":{"a":%q}}`, i, filler(mebibyte))
		}))(w, r)
	}},
	services: {"objects of 1.5 MB, one after another", func(w http.ResponseWriter, r *http.Request) {
		inEach("v1", "Service", endless(storm(100), func(i int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"big-%d","namespace":"default","uid":"b-%d","resourceVersion":"%d",`+
				`"annotations":{"a":%q}}}`, i, i, i+1, filler(3*mebibyte/2))
		}))(w, r)
	}},
	serviceAccounts: {"JSON 10,000 deep", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ServiceAccountList","metadata":{"resourceVersion":"1"},"items":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+"}")
	}},
	networkPolicies: {"a list without an end", func(w http.ResponseWriter, r *http.Request) {
		inEach("networking.k8s.io/v1", "NetworkPolicy", endless(1<<30, func(int) []byte { return []byte(`{"metadata":{"name":"a"}}`) }))(w, r)
	}},
	limitRanges: {"an event without an end", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, err := io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"annotations":{"a":"`)
		for part := filler(mebibyte); err == nil; {
			_, err = io.WriteString(w, part)
		}
	}},
	quotas: {"a watch that has no end, of one object that changes", func(w http.ResponseWriter, r *http.Request) {
		inEach("v1", "ResourceQuota", endless(storm(200_000), func(i int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"one","namespace":"default","uid":"q","resourceVersion":"%d"}}`, i+1)
		}))(w, r)
	}},
	budgets: {"invalid UTF-8 in protobuf", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
		bad := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a\xff\xfe", Namespace: "\xc0\xaf", Labels: map[string]string{"\xff": "\x80"}}}
		_, _ = w.Write(frame(bad))
	}},
	ingresses: {"a frame of 4 GiB", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
		_, err := io.WriteString(w, "\xff\xff\xff\xff")
		for part := filler(mebibyte); err == nil; {
			_, err = io.WriteString(w, part)
		}
	}},
	jobs: {"numbers that no field takes", func(w http.ResponseWriter, r *http.Request) {
		inEach("batch/v1", "Job", endless(10, func(i int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j-%d","namespace":"default","generation":99999999999999999999},"status":{"active":99999999999}}`, i)
		}))(w, r)
	}},
	controllers: {"an error without an end", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		var err error
		for part := filler(mebibyte); err == nil; {
			_, err = io.WriteString(w, part)
		}
	}},
	endpoints: {"YAML that refers to itself", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeYAML)
		_, _ = io.WriteString(w, "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]\n")
	}},
	daemonSets: {"nothing, for ever", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}},
}

// frame is an event of a watch in protobuf, in a frame.
func frame(obj runtime.Object) []byte {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	raw, err := runtime.Encode(encoder, obj)
	if err != nil {
		panic(err) // the object is the test's own
	}
	event, err := runtime.Encode(encoder, &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}})
	if err != nil {
		panic(err)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(event)))
	return bytes.Join([][]byte{out, event}, nil)
}

// TestNothingOfAnAnswerIsTooMuch has west answer by what fills memory, or breaks who reads it, all at once.
func TestNothingOfAnAnswerIsTooMuch(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	var stops []func()
	over, end := context.WithCancel(t.Context())
	honest := func() {
		for _, stop := range stops {
			stop()
		}
		end()
	}
	defer honest()
	var answered sync.Map
	largest := a.watchMemory()
	begin := func(of resourceOf) {
		stops = append(stops, a.west.Answer(liar.Reads(of.GroupResource(), "list", "watch"), func(w http.ResponseWriter, r *http.Request) {
			if a.west.IsAdmin(&liar.Request{Request: r}) {
				http.Error(w, "the admin has no use for that", http.StatusTeapot)
				return
			}
			answered.Store(of, true)
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(over, cancel)()
			nonsense[of].answer(&ended{w, ctx}, r.WithContext(ctx))
		}))
		a.west.End(of.GroupResource())
	}
	heard := func() {
		a.Logical.Within(3*framework.Deadline).Poll("all of it was answered", func() error {
			for of, lie := range nonsense {
				if _, done := answered.Load(of); !done && (of != services || len(stops) == len(nonsense)) {
					return fmt.Errorf("%s to %s was not", lie.what, of.Resource)
				}
			}
			return nil
		})
	}
	for of := range nonsense {
		if of != services {
			begin(of)
		}
	}
	heard()
	begin(services) // by which west has more than is kept of it, so that nothing else is asked of it for a while
	heard()
	a.awaitWest("is told", v1alpha1.ClusterSyncerRunning, func(c *metav1.Condition) bool { return c.Reason == "BoundsExceeded" })
	for range 3 {
		name := a.unique("canary")
		a.create(deployment(name, 1, "east"))
		framework.Await(a.Logical, name, "runs", expect.Available(1))
	}
	most := largest()
	t.Logf("the server took %d MiB", most/mebibyte)
	if most > mostMemory {
		t.Errorf("the server took %d MiB", most/mebibyte)
	}
	honest()
	a.Logical.Poll("west is well", func() error {
		west, err := a.Environment.Logical.Manifold.ManifoldV1alpha1().Clusters().Get(a.Context(), "west", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(west.Status.Conditions, v1alpha1.ClusterReady) {
			return errors.New("it is not ready")
		}
		return nil
	})
	a.unharmed()
}

// TestACustomStatusThatIsTooDeepIsTold has west give a custom object a status that is nested deeper than anything is read. It is cut off before anybody
// knows whose it is, so the condition of the cluster tells of it by its kind, and the object that it is left out. What else west has of the kind goes on.
func TestACustomStatusThatIsTooDeepIsTold(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	var deep any = "bottom"
	for range 400 {
		deep = map[string]any{"d": []any{deep}}
	}
	get := func() *unstructured.Unstructured { return a.getIn(a.Environment.Logical, trinkets, a.Namespace, "own") }
	was := get()
	stop := a.west.Change(trinkets.GroupResource(), func(obj *unstructured.Unstructured) bool {
		if a.ofArena(obj, "own") {
			obj.Object["status"] = map[string]any{"deep": deep, "conditions": []any{condition("Ready", "as shown")}}
		}
		return true
	})
	defer stop()
	a.awaitWest("is told", v1alpha1.ClusterSyncerRunning, func(c *metav1.Condition) bool {
		return c.Status == metav1.ConditionTrue && c.Reason == "BoundsExceeded" && strings.Contains(c.Message, trinkets.GroupResource().String()+" that are nested deeper")
	})
	a.Logical.Poll("the status is left out", func() error {
		is := get()
		if of := identity.CopiesOf(is)["west"]; !of.Omitted || len(conditionsOf(is)) != 1 {
			return fmt.Errorf("it is told %+v, with %d conditions", of, len(conditionsOf(is)))
		}
		return nil
	})
	if is := get(); !reflect.DeepEqual(is.Object["spec"], was.Object["spec"]) || projection.Deeper(is.Object, 100) {
		t.Errorf("it is %.1000v, was %v", is.Object, was.Object)
	}
	a.customCanary() // of the same kind, in west
	a.unharmed()
	stop()
	a.customCanary()
	a.unharmed()
}

// ended is an answer that ends when a test is through with it.
type ended struct {
	http.ResponseWriter
	ctx context.Context
}

func (e *ended) Write(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.ResponseWriter.Write(p)
}

func (e *ended) Unwrap() http.ResponseWriter { return e.ResponseWriter }
