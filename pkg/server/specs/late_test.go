package specs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Thing is what the services of these tests serve.
type Thing struct{ Name string }

// OpenAPIModelName implements what names a definition.
func (Thing) OpenAPIModelName() string { return "thing" }

// world is a server with two groups, and how often what documents are made of was made.
type world struct {
	services *restful.Container
	v2       *common.Config
	v3       *common.OpenAPIV3Config
	mu       sync.Mutex
	made     int
}

func newWorld() *world {
	w := &world{services: restful.NewContainer()}
	for _, root := range []string{"/apis/apps/v1", "/api/v1"} {
		service := new(restful.WebService).Path(root).Produces(restful.MIME_JSON)
		service.Route(service.GET("/things").To(func(*restful.Request, *restful.Response) {}).Operation("list"+root).
			Doc("things of "+root).Returns(http.StatusOK, "OK", Thing{}).Writes(Thing{}))
		w.services.Add(service)
	}
	definitions := func(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.made++
		return map[string]common.OpenAPIDefinition{"thing": {Schema: spec.Schema{
			VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-thing": "yes"}},
			SchemaProps:      spec.SchemaProps{Type: []string{"object"}, Description: "Thing is a thing."},
		}}}
	}
	name := func(name string) (string, spec.Extensions) { return name, spec.Extensions{"x-name": name} }
	info := &spec.Info{InfoProps: spec.InfoProps{Title: "Things", Version: "v1"}}
	w.v2 = &common.Config{ProtocolList: []string{"https"}, Info: info, GetDefinitions: definitions, GetDefinitionName: name}
	w.v3 = &common.OpenAPIV3Config{Info: info, GetDefinitions: definitions, GetDefinitionName: name, Definitions: definitions(nil)}
	return w
}

func (w *world) since(before int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made - before
}

// stock serves the documents as the server of Kubernetes does.
func (w *world) stock() http.Handler {
	paths, v2, v3 := mux.NewPathRecorderMux("stock"), *w.v2, *w.v3
	routes.OpenAPI{Config: &v2}.InstallV2(w.services, paths)
	routes.OpenAPI{V3Config: &v3}.InstallV3(w.services, paths)
	return paths
}

func (w *world) late() http.Handler {
	paths := mux.NewPathRecorderMux("late")
	register(paths, w.services, w.v2, w.v3)
	return paths
}

func ask(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestDocumentsThatAreMadeLateAreThoseOfTheStockServer(t *testing.T) {
	stock, late := newWorld().stock(), newWorld().late()
	var listed handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(ask(stock, pathV3).Body.Bytes(), &listed); err != nil || len(listed.Paths) != 2 {
		t.Fatalf("the stock server lists %v: %v", listed, err)
	}
	paths := []string{path, pathV3, pathV3 + "/apis/apps/v1", pathV3 + "/api/v1", pathV3 + "/apis/apps/v1?hash=old", pathV3 + "/apis/batch/v1"}
	for _, of := range listed.Paths {
		paths = append(paths, of.ServerRelativeURL)
	}
	for range 2 { // made, and kept
		for _, path := range paths {
			for _, accept := range []string{"", asJSON, asProtobuf, "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "text/html"} {
				want, got := ask(stock, path, "Accept", accept), ask(late, path, "Accept", accept)
				if path == pathV3+"/apis/batch/v1" {
					if got.Code != http.StatusNotFound {
						t.Errorf("%s answers with %d", path, got.Code)
					}
					continue
				}
				if got.Code != want.Code || got.Body.String() != want.Body.String() {
					t.Errorf("%s as %q answers with %d and\n%s\nwant %d and\n%s", path, accept, got.Code, got.Body, want.Code, want.Body)
				}
				for _, name := range []string{"Etag", "Content-Type", "Location", "Cache-Control"} {
					if got.Header().Get(name) != want.Header().Get(name) {
						t.Errorf("%s as %q answers with %s %q, want %q", path, accept, name, got.Header().Get(name), want.Header().Get(name))
					}
				}
			}
		}
	}
	if body := ask(late, path).Body.String(); !strings.Contains(body, "Thing is a thing.") {
		t.Errorf("no thing in %s", body)
	}
}

func TestADocumentIsMadeForWhoAsksAndForgottenSoonAfter(t *testing.T) {
	for name, path := range map[string]string{"version 2": path, "version 3": pathV3 + "/apis/apps/v1"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				late, start := w.late(), w.since(0)
				ask(late, pathV3)
				ask(late, pathV3)
				if n := w.since(start); n != 0 {
					t.Errorf("the list took definitions %d times more", n)
				}
				for range 3 {
					if got := ask(late, path); got.Code != http.StatusOK {
						t.Fatalf("answers with %d: %s", got.Code, got.Body)
					}
					time.Sleep(kept - 1)
				}
				if n := w.since(start); n != 1 {
					t.Errorf("made %d times for those who ask within a minute, want once", n)
				}
				time.Sleep(kept)
				synctest.Wait()
				tag := ask(late, path).Header().Get("Etag")
				if n := w.since(start); n != 2 {
					t.Errorf("made %d times, want once more after a minute", n)
				}
				time.Sleep(kept + 1)
				synctest.Wait()
				if path == "/openapi/v2" {
					if got := ask(late, path, "If-None-Match", tag); got.Code != http.StatusNotModified || got.Header().Get("Etag") != tag {
						t.Errorf("who has it already is answered with %d, %q", got.Code, got.Header().Get("Etag"))
					}
					if got := ask(late, path, "If-None-Match", `"another"`); got.Code != http.StatusOK {
						t.Errorf("who has another one is answered with %d", got.Code)
					}
					if n := w.since(start); n != 3 {
						t.Errorf("made %d times, want not for who has it already", n)
					}
					time.Sleep(kept + 1)
				}
			})
		})
	}
}

func TestOneDocumentServesAllWhoAskAtOnce(t *testing.T) {
	w := newWorld()
	definitions := w.v3.GetDefinitions
	var making, most atomic.Int32
	w.v3.GetDefinitions = func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		if n := making.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer making.Add(-1)
		runtime.Gosched()
		return definitions(ref)
	}
	late, start := w.late(), w.since(0)
	var all sync.WaitGroup
	failed := make(chan string, 100)
	for i := range 30 {
		all.Go(func() {
			if got := ask(late, []string{path, pathV3, pathV3 + "/apis/apps/v1", pathV3 + "/api/v1"}[i%4]); got.Code != http.StatusOK {
				failed <- fmt.Sprintf("%d: %s", got.Code, got.Body)
			}
		})
	}
	all.Wait()
	close(failed)
	for why := range failed {
		t.Error(why)
	}
	if n := w.since(start); n != 3 {
		t.Errorf("made %d times, want once for each of three documents", n)
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d documents of version 3 were made at once", n)
	}
}
