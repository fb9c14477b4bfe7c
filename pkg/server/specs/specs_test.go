package specs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheDocumentIsMadeAnewInTheFormsThatWereAskedFor also shows that definitions that go one after another cost one document.
func TestTheDocumentIsMadeAnewInTheFormsThatWereAskedFor(t *testing.T) {
	const head = http.MethodHead + " "
	for name, test := range map[string]struct {
		asked, want []string
	}{
		"nobody asked":            {},
		"as JSON":                 {[]string{"application/json"}, []string{head + asJSON}},
		"as whatever there is":    {[]string{""}, []string{head + asJSON}},
		"as clients of Go ask":    {[]string{asProtobuf}, []string{head + asProtobuf}},
		"as clients of old asked": {[]string{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}, []string{head + asProtobuf}},
		"in both, and again":      {[]string{asProtobuf, "", asProtobuf}, []string{head + asProtobuf, head + asJSON}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan string, 10)
				d := &Document{}
				handler := d.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					served <- r.Method + " " + r.Header.Get("Accept")
				}))
				for _, accept := range test.asked {
					handler.ServeHTTP(httptest.NewRecorder(), get(path, accept))
				}
				handler.ServeHTTP(httptest.NewRecorder(), get("/openapi/v3", asJSON))
				drain(served)

				client := fake.NewClientset(definition("a"), definition("b"))
				informers := externalversions.NewSharedInformerFactory(client, 0)
				definitions := informers.Apiextensions().V1().CustomResourceDefinitions().Informer()
				informers.Start(ctx.Done())
				go d.Follow(ctx, definitions)
				for _, name := range []string{"a", "b"} {
					synctest.Wait()
					if err := client.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(quiet - 1)
				}
				synctest.Wait()
				if len(served) > 0 {
					t.Errorf("made anew while definitions went: %q", drain(served))
				}
				time.Sleep(10 * quiet)
				synctest.Wait()
				if got := drain(served); !slices.Equal(got, test.want) {
					t.Errorf("made anew: %q, want %q", got, test.want)
				}
				cancel()
				informers.Shutdown()
			})
		})
	}
}

// drain returns what was served, sorted.
func drain(served chan string) []string {
	var out []string
	for len(served) > 0 {
		out = append(out, <-served)
	}
	slices.Sort(out)
	return out
}

func get(path, accept string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	return r
}

func definition(name string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
