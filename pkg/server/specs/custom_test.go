package specs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	"k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	stockopenapi "k8s.io/apiextensions-apiserver/pkg/controller/openapiv3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
)

const protobufOfV3 = "application/" + formProtobuf

// defines returns an established definition of a kind, with a schema in each of its versions.
func defines(kind, group string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, UID: "1", ResourceVersion: "1", Generation: 1},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Group: group, Names: names, Scope: apiextensionsv1.NamespaceScoped},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: names, Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue}, {Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}},
	}
	for _, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: len(crd.Spec.Versions) == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Description: kind + " of " + version, Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object"}},
			}},
		})
	}
	return crd
}

// with changes a definition of a test.
func with(crd *apiextensionsv1.CustomResourceDefinition, change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	change(crd)
	return crd
}

// store is what the server knows of definitions, and how often each was described.
type store struct {
	cache.Indexer
	custom *custom
	paths  *mux.PathRecorderMux
	made   atomic.Int32
}

func newStore(t *testing.T, definitions ...*apiextensionsv1.CustomResourceDefinition) *store {
	t.Helper()
	s := &store{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), paths: mux.NewPathRecorderMux("custom")}
	s.custom = newCustom(listers.NewCustomResourceDefinitionLister(s.Indexer))
	s.custom.build = func(crd *apiextensionsv1.CustomResourceDefinition, version string, o builder.Options) (*spec3.OpenAPI, error) {
		s.made.Add(1)
		return builder.BuildOpenAPIV3(crd, version, o)
	}
	w := newWorld()
	registerV3(s.paths, w.services, w.v3, s.custom)
	for _, crd := range definitions {
		s.put(t, crd)
	}
	return s
}

func (s *store) put(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	crd = crd.DeepCopy()
	crd.ResourceVersion = rand.String(10)
	if err := s.Update(crd); err != nil {
		t.Fatal(err)
	}
}

// listed returns the addresses of documents, by path.
func listed(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	var all handler3.OpenAPIV3Discovery
	answer := ask(h, pathV3)
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
		t.Fatalf("the list is %d %s: %v", answer.Code, answer.Body, err)
	}
	out := map[string]string{}
	for path, at := range all.Paths {
		out[path] = at.ServerRelativeURL
	}
	return out
}

// everything are definitions of all sorts.
func everything() []*apiextensionsv1.CustomResourceDefinition {
	yes := true
	return []*apiextensionsv1.CustomResourceDefinition{
		with(defines("Widget", "a.example.com", "v1", "v1beta1", "v1alpha1"), func(crd *apiextensionsv1.CustomResourceDefinition) {
			v1, beta, alpha := &crd.Spec.Versions[0], &crd.Spec.Versions[1], &crd.Spec.Versions[2]
			v1.Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
			}
			v1.SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}}
			listType, key := "map", "name"
			v1.Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
				Type: "object", Required: []string{"color"}, XValidations: apiextensionsv1.ValidationRules{{Rule: "self.replicas > 0", Message: "some"}},
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"color":    {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"red"`)}}, Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)}},
					"replicas": {Type: "integer", Format: "int32"},
					"port":     {XIntOrString: true, AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}},
					"anything": {Type: "object", XPreserveUnknownFields: &yes},
					"pod":      {Type: "object", XEmbeddedResource: true, XPreserveUnknownFields: &yes},
					"maybe":    {Type: "string", Nullable: true},
					"parts": {Type: "array", XListType: &listType, XListMapKeys: []string{key}, Items: &apiextensionsv1.JSONSchemaPropsOrArray{
						Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{key}, Properties: map[string]apiextensionsv1.JSONSchemaProps{key: {Type: "string"}}},
					}},
				},
			}
			beta.Deprecated = true
			alpha.Served = false
		}),
		with(defines("Gadget", "a.example.com", "v1"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }),
		defines("Widget", "b.example.com", "v1"),
		with(defines("Old", "b.example.com", "v1", "v2"), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.PreserveUnknownFields = true
			crd.Spec.Versions[0].Schema = nil
			crd.Spec.Versions[1].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Description: "not structural"}}}
		}),
		with(defines("Gone", "b.example.com", "v1"), func(crd *apiextensionsv1.CustomResourceDefinition) {
			now := metav1.Now()
			crd.DeletionTimestamp, crd.Finalizers = &now, []string{apiextensionsv1.CustomResourceCleanupFinalizer}
		}),
		with(defines("Conflicting", "b.example.com", "v1"), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Names.Kind = "Widget" // which there is
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse}, {Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse},
			}}
		}),
		with(defines("Young", "c.example.com", "v1"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.Conditions = nil }),
	}
}

func TestDocumentsOfCustomKindsAreThoseOfTheStockController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []k8sruntime.Object
		for _, crd := range everything() {
			objects = append(objects, crd)
		}
		stop := make(chan struct{})
		informers := externalversions.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
		controller, service := stockopenapi.NewController(informers.Apiextensions().V1().CustomResourceDefinitions()), handler3.NewOpenAPIService()
		informers.Start(stop)
		go controller.Run(service, stop)
		defer informers.Shutdown()
		defer close(stop)
		time.Sleep(time.Minute) // in which it does all that it has to
		synctest.Wait()
		stock := mux.NewPathRecorderMux("stock")
		if err := service.RegisterOpenAPIV3VersionedService(pathV3, stock); err != nil {
			t.Fatal(err)
		}
		ours := newStore(t, everything()...)

		want, got := listed(t, stock), listed(t, ours.paths)
		for _, installed := range []string{"apis/apps/v1", "api/v1"} {
			if got[installed] == "" {
				t.Errorf("%s is not listed", installed)
			}
			delete(got, installed)
		}
		paths := slices.Sorted(maps.Keys(want))
		if !slices.Equal(slices.Sorted(maps.Keys(got)), paths) || len(paths) != 4 {
			t.Fatalf("there are documents of %v, want of the four %v", slices.Sorted(maps.Keys(got)), paths)
		}
		if n := ours.made.Load(); n != 0 {
			t.Errorf("the list made %d kinds", n)
		}
		for _, path := range paths {
			for _, accept := range []string{"", asJSON, protobufOfV3, "application/" + formProtobufOld, "text/html", "text/html, */*;q=0.5", protobufOfV3 + ", " + asJSON} {
				for _, hashed := range []bool{false, true} {
					there, here := pathV3+"/"+path, pathV3+"/"+path
					if hashed {
						there, here = want[path], got[path]
					}
					want, got := ask(stock, there, "Accept", accept), ask(ours.paths, here, "Accept", accept)
					if got.Code != want.Code || got.Body.String() != want.Body.String() {
						t.Errorf("%s as %q answers with %d and\n%s\nwant %d and\n%s", here, accept, got.Code, got.Body, want.Code, want.Body)
					}
					for _, name := range []string{"Content-Type", "Cache-Control", "Expires", "Vary"} {
						if got.Header().Get(name) != want.Header().Get(name) {
							t.Errorf("%s as %q answers with %s %q, want %q", here, accept, name, got.Header().Get(name), want.Header().Get(name))
						}
					}
					if tag := got.Header().Get("Etag"); got.Code == http.StatusOK && address(path, strings.Trim(tag, `"`)) != listed(t, ours.paths)[path] {
						t.Errorf("%s has the tag %s, and is listed as %s", here, tag, listed(t, ours.paths)[path])
					}
				}
			}
		}
	})
}

func TestATagChangesExactlyWhenItsDocumentDoes(t *testing.T) {
	const path = "apis/a.example.com/v1"
	type definition = apiextensionsv1.CustomResourceDefinition
	before := func() []*definition { return everything()[:2] }
	for name, test := range map[string]struct {
		change  func(*definition)
		another []*definition
		changes bool
	}{
		"nothing":                 {change: func(*definition) {}},
		"a label":                 {change: func(crd *definition) { crd.Labels = map[string]string{"a": "b"} }},
		"another one of the same": {change: func(crd *definition) { crd.UID, crd.Generation = "2", 7 }},
		"a short name":            {change: func(crd *definition) { crd.Status.AcceptedNames.ShortNames = []string{"w"} }},
		"how it is converted": {change: func(crd *definition) {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: "None"}
		}},
		"that it is deprecated":            {change: func(crd *definition) { crd.Spec.Versions[0].Deprecated = true }},
		"where replicas are":               {change: func(crd *definition) { crd.Spec.Versions[0].Subresources.Scale.SpecReplicasPath = ".spec.size" }},
		"a description of another version": {change: func(crd *definition) { crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Description = "another" }},
		"that another version is served":   {change: func(crd *definition) { crd.Spec.Versions[2].Served = true }},
		"that it is being deleted": {change: func(crd *definition) {
			now := metav1.Now()
			crd.DeletionTimestamp, crd.Generation = &now, 2
		}},
		"a kind of another version": {another: []*definition{defines("New", "a.example.com", "v2")}},
		"a kind of another group":   {another: []*definition{defines("New", "b.example.com", "v1")}},
		"a kind that is not established": {another: []*definition{with(defines("New", "a.example.com", "v1"), func(crd *definition) {
			crd.Status.Conditions[1].Status = apiextensionsv1.ConditionFalse
		})}},
		"a description":         {changes: true, change: func(crd *definition) { crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "another" }},
		"no schema":             {changes: true, change: func(crd *definition) { crd.Spec.Versions[0].Schema = nil }},
		"a field to select by":  {changes: true, change: func(crd *definition) { crd.Spec.Versions[0].SelectableFields[0].JSONPath = ".spec.port" }},
		"no status":             {changes: true, change: func(crd *definition) { crd.Spec.Versions[0].Subresources.Status = nil }},
		"no scale":              {changes: true, change: func(crd *definition) { crd.Spec.Versions[0].Subresources.Scale = nil }},
		"its scope":             {changes: true, change: func(crd *definition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }},
		"its kind":              {changes: true, change: func(crd *definition) { crd.Status.AcceptedNames.Kind = "Thing" }},
		"the kind of its list":  {changes: true, change: func(crd *definition) { crd.Status.AcceptedNames.ListKind = "Widgets" }},
		"its plural":            {changes: true, change: func(crd *definition) { crd.Status.AcceptedNames.Plural = "widgetes" }},
		"that it is not served": {changes: true, change: func(crd *definition) { crd.Spec.Versions[0].Served = false }},
		"that it is not established": {changes: true, change: func(crd *definition) {
			crd.Status.Conditions[1].Status = apiextensionsv1.ConditionFalse
		}},
		"one more kind": {changes: true, another: []*definition{defines("New", "a.example.com", "v1")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, before()...)
			was, at := ask(s.paths, pathV3+"/"+path), listed(t, s.paths)[path]
			if test.change != nil {
				s.put(t, with(before()[0], test.change))
			}
			for _, crd := range test.another {
				s.put(t, crd)
			}
			answer := ask(s.paths, pathV3+"/"+path)
			if changed := answer.Body.String() != was.Body.String(); changed != test.changes {
				t.Errorf("the document has changed: %t, want %t", changed, test.changes)
			}
			if changed := answer.Header().Get("Etag") != was.Header().Get("Etag"); changed != test.changes {
				t.Errorf("its tag has changed: %t, want %t", changed, test.changes)
			}
			if changed := listed(t, s.paths)[path] != at; changed != test.changes {
				t.Errorf("its address has changed: %t, want %t", changed, test.changes)
			}
		})
	}
}

func TestWhoHasADocumentOfCustomKindsNeedsNoneMade(t *testing.T) {
	s := newStore(t, defines("Widget", "a.example.com", "v1"))
	at := listed(t, s.paths)["apis/a.example.com/v1"]
	_, hash, _ := strings.Cut(at, "hash=")
	for path, want := range map[string]int{at: http.StatusNotModified, pathV3 + "/apis/a.example.com/v1": http.StatusNotModified,
		pathV3 + "/apis/a.example.com/v1?hash=old": http.StatusMovedPermanently, pathV3 + "/apis/a.example.com/v2": http.StatusNotFound,
		pathV3 + "/apis/a.example.com": http.StatusNotFound, pathV3 + "/apis/a.example.com/v1/widgets": http.StatusNotFound} {
		if got := ask(s.paths, path, "If-None-Match", `"`+hash+`"`); got.Code != want || want == http.StatusMovedPermanently && got.Header().Get("Location") != at {
			t.Errorf("%s answers with %d and %v, want %d", path, got.Code, got.Header(), want)
		}
	}
	if n := s.made.Load(); n != 0 {
		t.Errorf("%d kinds were described", n)
	}
	if got := ask(s.paths, at, "If-None-Match", `"old"`); got.Code != http.StatusOK || s.made.Load() != 1 {
		t.Errorf("who has an old one is answered with %d, and %d kinds were described", got.Code, s.made.Load())
	}
}

func TestFewDocumentsOfCustomKindsAreKeptAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		group := func(i int) string { return fmt.Sprintf("g%d.example.com", i) }
		asks := func(i int, makes int32, want int) {
			t.Helper()
			before := s.made.Load()
			got := ask(s.paths, pathV3+"/apis/"+group(i)+"/v1")
			if made := s.made.Load() - before; made != makes || got.Code != want {
				t.Errorf("group %d: %d kinds described and %d answered, want %d and %d", i, made, got.Code, makes, want)
			}
			if n, _ := s.custom.holds(); n > mostKept {
				t.Errorf("%d documents are kept", n)
			}
			time.Sleep(time.Millisecond)
		}
		for i := range mostKept + 1 {
			s.put(t, defines("Widget", group(i), "v1"))
		}
		for i := range mostKept + 1 {
			asks(i, 1, http.StatusOK)
		}
		for i := range mostKept {
			asks(i+1, 0, http.StatusOK)
		}
		asks(0, 1, http.StatusOK) // the first had to go for the last
		asks(2, 0, http.StatusOK)
		asks(1, 1, http.StatusOK) // and the one that was asked for longest ago for the first

		s.put(t, with(defines("Widget", group(1), "v1"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }))
		s.put(t, defines("Gadget", group(2), "v1"))
		asks(1, 1, http.StatusOK)
		asks(2, 2, http.StatusOK)

		time.Sleep(kept - 10*time.Millisecond)
		asks(2, 0, http.StatusOK)
		time.Sleep(kept - 10*time.Millisecond)
		if n, _ := s.custom.holds(); n != 1 {
			t.Errorf("%d documents are kept, want the one that was asked for within a minute", n)
		}
		asks(2, 0, http.StatusOK)
		if err := s.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		asks(2, 0, http.StatusNotFound)
		got := listed(t, s.paths)
		if documents, prints := s.custom.holds(); len(got) != 2 || documents != 0 || prints != 0 {
			t.Errorf("listed are %v; %d documents and %d prints are kept of nothing", got, documents, prints)
		}
	})
}

// holds returns how many documents and how many prints are kept. The documents that nobody asks for are let go by timers, beside the test.
func (c *custom) holds() (documents, prints int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kept), len(c.prints)
}

func TestOneDocumentOfCustomKindsServesAllWhoAskAtOnce(t *testing.T) {
	s := newStore(t, everything()...)
	build := s.custom.build
	var making, most atomic.Int32
	s.custom.build = func(crd *apiextensionsv1.CustomResourceDefinition, version string, o builder.Options) (*spec3.OpenAPI, error) {
		if n := making.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer making.Add(-1)
		runtime.Gosched()
		return build(crd, version, o)
	}
	paths := slices.Sorted(maps.Keys(s.custom.current()))
	var all sync.WaitGroup
	failures := make(chan string, 100)
	for i := range 40 {
		all.Go(func() {
			if i%10 == 9 {
				s.custom.current()
				return
			}
			at := pathV3 + "/" + paths[i%len(paths)]
			if got := ask(s.paths, at, "Accept", []string{asJSON, protobufOfV3}[i%2]); got.Code != http.StatusOK || got.Body.Len() == 0 {
				failures <- fmt.Sprintf("%s: %d: %s", at, got.Code, got.Body)
			}
		})
	}
	all.Wait()
	close(failures)
	for why := range failures {
		t.Error(why)
	}
	if n := s.made.Load(); n != 7 { // of group a, Widget twice and Gadget; of b, Widget, Gone, and Old twice
		t.Errorf("%d kinds were described, want each of seven once", n)
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d documents were made at once", n)
	}
}

// A definition that once was established may ask for the names of another one, which is refused. It keeps those that it had.
func TestADefinitionCannotTakeAnothersPlaceInADocument(t *testing.T) {
	ours := defines("Widget", "a.example.com", "v1")
	theirs := with(defines("Another", "a.example.com", "v1"), func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Names.Kind, crd.Spec.Names.ListKind = ours.Spec.Names.Kind, ours.Spec.Names.ListKind
		crd.Status.Conditions[0].Status = apiextensionsv1.ConditionFalse
	})
	installed := defines("Widget", "apps", "v1") // a group and version that is installed
	s := newStore(t, theirs, ours, installed)
	document := ask(s.paths, pathV3+"/apis/a.example.com/v1")
	for _, want := range []string{"com.example.a.v1.Widget", "com.example.a.v1.Another", "Widget of v1", "Another of v1"} {
		if document.Code != http.StatusOK || strings.Count(document.Body.String(), `"`+want+`"`) != 1 {
			t.Errorf("says %s not once: %d %s", want, document.Code, document.Body)
		}
	}
	if got, want := ask(s.paths, pathV3+"/apis/apps/v1").Body.String(), ask(newStore(t).paths, pathV3+"/apis/apps/v1").Body.String(); got != want {
		t.Errorf("the document of what is installed is\n%s\nwant\n%s", got, want)
	}
	if got, want := listed(t, s.paths)["apis/apps/v1"], listed(t, newStore(t).paths)["apis/apps/v1"]; got != want {
		t.Errorf("it is listed as %s, want %s", got, want)
	}
}

func TestADefinitionThatCannotBeDescribedIsLeftOut(t *testing.T) {
	s := newStore(t, defines("Widget", "a.example.com", "v1"), defines("Gadget", "a.example.com", "v1"))
	build := s.custom.build
	s.custom.build = func(crd *apiextensionsv1.CustomResourceDefinition, version string, o builder.Options) (*spec3.OpenAPI, error) {
		if crd.Spec.Names.Kind == "Gadget" {
			return nil, fmt.Errorf("no")
		}
		return build(crd, version, o)
	}
	body := ask(s.paths, pathV3+"/apis/a.example.com/v1").Body.String()
	if !strings.Contains(body, "Widget of v1") || strings.Contains(body, "Gadget of v1") {
		t.Errorf("the document is %s", body)
	}
}
