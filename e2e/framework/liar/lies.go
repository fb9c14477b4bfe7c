package liar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lies are what is said otherwise of one resource.
type lies struct {
	changes []*change
	// invented are objects that do not exist, by namespace and name.
	invented map[string]*unstructured.Unstructured
}

type change struct {
	apply func(*unstructured.Unstructured) bool
}

// Change has every object of a resource changed on its way to whoever reads it, until it is stopped, and tells those who watch at once. An
// object of which the function returns false is not shown at all. The function gives the same for the same object.
func (s *Server) Change(resource schema.GroupResource, apply func(*unstructured.Unstructured) bool) (stop func()) {
	added := &change{apply: apply}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.liesOf(resource)
	s.alter(resource, append(slices.Clone(l.changes), added))
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.alter(resource, slices.DeleteFunc(slices.Clone(l.changes), func(c *change) bool { return c == added }))
	})
}

// alter has other changes apply to a resource, and tells those who watch what differs by that. It is for who holds mu: what happens meanwhile
// is told after it.
func (s *Server) alter(resource schema.GroupResource, to []*change) {
	l := s.liesOf(resource)
	from := l.changes
	l.changes = to
	for open := range s.streams {
		if open.resource != resource {
			continue
		}
		items, err := s.list(open)
		if err != nil {
			s.expire(open)
			continue
		}
		for _, item := range items {
			was, shown := changedBy(from, item)
			is, shows := changedBy(to, item)
			switch {
			case shown && !shows:
				open.send("DELETED", &unstructured.Unstructured{Object: was}, true)
			case shows && !shown:
				open.send("ADDED", &unstructured.Unstructured{Object: is}, true)
			case shows && !equality.Semantic.DeepEqual(was, is):
				open.send("MODIFIED", &unstructured.Unstructured{Object: is}, true)
			}
		}
	}
}

// list reads what a watch is about, as it is. It is for who holds mu.
func (s *Server) list(open *stream) ([]map[string]any, error) {
	if open.metadata {
		return nil, errors.New("of metadata there is no list")
	}
	r := inJSON(open.request.Request)
	query := r.URL.Query()
	for _, name := range []string{"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds", "timeout", "limit"} {
		query.Del(name)
	}
	r.URL.RawQuery = query.Encode()
	r.Header.Del("Authorization")
	answer, err := s.admin.Transport.RoundTrip(s.outgoing(r.WithContext(s.ctx), s.admin))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var list struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Items      []map[string]any `json:"items"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		item["apiVersion"], item["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
	}
	return list.Items, nil
}

// changedBy returns an object as changes make it, and whether it is shown. One that is another by that has another resource version, for who
// has seen one version of an object looks no further.
func changedBy(changes []*change, obj map[string]any) (map[string]any, bool) {
	if len(changes) == 0 {
		return obj, true
	}
	out := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(obj)}
	for _, c := range changes {
		if !c.apply(out) {
			return obj, false
		}
	}
	if equality.Semantic.DeepEqual(out.Object, obj) {
		return obj, true
	}
	out.SetResourceVersion(lied(out.GetResourceVersion()))
	return out.Object, true
}

// lie is what resource versions of what is not true are larger by. No API server of a test gets that far.
const lie = 1_000_000_000_000_000

func lied(version string) string {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil || n >= lie {
		return version
	}
	return strconv.FormatUint(n+lie, 10)
}

func truthful(version string) string {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return version
	}
	return strconv.FormatUint(n%lie, 10)
}

// Invent shows objects that do not exist, or are deleted meanwhile, until it is stopped: in lists, by name, and at once to those who watch. Their
// resource version is filled in.
func (s *Server) Invent(resource schema.GroupResource, objects ...*unstructured.Unstructured) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, obj := range objects {
		s.liesOf(resource).invented[key(obj)] = obj
	}
	s.tell(resource, "ADDED", objects)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, obj := range objects {
			delete(s.liesOf(resource).invented, key(obj))
		}
		s.tell(resource, "DELETED", objects)
	})
}

// End ends all watches of a resource as an API server does that has forgotten what was before, so that everybody lists anew.
func (s *Server) End(resource schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for open := range s.streams {
		if open.resource == resource {
			s.expire(open)
		}
	}
}

func (s *Server) tell(resource schema.GroupResource, kind string, objects []*unstructured.Unstructured) {
	for open := range s.streams {
		for _, obj := range objects {
			if open.resource == resource && open.shows(obj) {
				open.send(kind, obj, false)
			}
		}
	}
}

func key(obj *unstructured.Unstructured) string { return obj.GetNamespace() + "/" + obj.GetName() }

// liesOf is for who holds mu.
func (s *Server) liesOf(resource schema.GroupResource) *lies {
	if s.lies[resource] == nil {
		s.lies[resource] = &lies{invented: map[string]*unstructured.Unstructured{}}
	}
	return s.lies[resource]
}

func (s *Server) liesAbout(resource schema.GroupResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lies[resource]
	return l != nil && len(l.changes)+len(l.invented) > 0
}

// inventedFor returns what a reader gets to see of what does not exist.
func (s *Server) inventedFor(v view) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*unstructured.Unstructured
	if l := s.lies[v.resource]; l != nil {
		for _, obj := range l.invented {
			if v.shows(obj) {
				out = append(out, obj)
			}
		}
	}
	return out
}

// invents reports whether an object is shown to who watches although it does not exist: then it is not told that it has gone.
func (s *Server) invents(open *stream, obj map[string]any) bool {
	gone := key(&unstructured.Unstructured{Object: obj})
	return slices.ContainsFunc(s.inventedFor(open.view), func(invented *unstructured.Unstructured) bool { return key(invented) == gone })
}

// changed returns an object as it is told, and whether it is shown.
func (s *Server) changed(resource schema.GroupResource, obj map[string]any) (map[string]any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lies[resource]; l != nil {
		return changedBy(l.changes, obj)
	}
	return obj, true
}

// truthfully asks the API server about a version that it has given out.
func truthfully(r *http.Request) {
	query := r.URL.Query()
	if version := query.Get("resourceVersion"); version != truthful(version) {
		query.Set("resourceVersion", truthful(version))
		r.URL.RawQuery = query.Encode()
	}
}

// view is what part of a resource somebody reads.
type view struct {
	resource        schema.GroupResource
	namespace, name string
	labels          labels.Selector
	// metadata tells that only that of objects is wanted.
	metadata bool
}

func viewOf(r *Request) view {
	query := r.URL.Query()
	v := view{
		resource: schema.GroupResource{Group: r.APIGroup, Resource: r.Resource}, namespace: r.Namespace, name: r.Name,
		labels: labels.Everything(), metadata: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
	if selector, err := labels.Parse(query.Get("labelSelector")); err == nil {
		v.labels = selector
	}
	if selector, err := fields.ParseSelector(query.Get("fieldSelector")); err == nil && v.name == "" {
		v.name, _ = selector.RequiresExactMatch("metadata.name")
	}
	return v
}

func (v view) shows(obj *unstructured.Unstructured) bool {
	return (v.namespace == "" || v.namespace == obj.GetNamespace()) && (v.name == "" || v.name == obj.GetName()) &&
		v.labels.Matches(labels.Set(obj.GetLabels()))
}

// of returns an object as the reader wants it, at a version.
func (v view) of(obj *unstructured.Unstructured, version string) map[string]any {
	out := obj.DeepCopy()
	out.SetResourceVersion(version)
	if v.metadata {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": out.Object["metadata"]}
	}
	return out.Object
}

// inJSON has the API server answer in JSON, in whatever form the client asks for.
func inJSON(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	accept := r.Header.Get("Accept")
	first, _, _ := strings.Cut(accept, ",")
	_, as, found := strings.Cut(first, ";")
	if !found || !strings.Contains(as, "as=") {
		out.Header.Set("Accept", "application/json")
	} else {
		out.Header.Set("Accept", "application/json;"+as)
	}
	out.Header.Del("Accept-Encoding")
	return out
}

// read passes a get or a list on and changes the answer.
func (s *Server) read(w http.ResponseWriter, r *Request, proxy *httputil.ReverseProxy) {
	v := viewOf(r)
	if invented := s.inventedFor(v); r.Verb == "get" && len(invented) == 1 {
		writeJSON(w, http.StatusOK, v.of(invented[0], "1"))
		return
	}
	answer := httptest.NewRecorder()
	proxy.ServeHTTP(answer, inJSON(r.Request))
	var body map[string]any
	if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &body) != nil {
		copyAnswer(w, answer.Code, answer.Header(), answer.Body)
		return
	}
	if r.Verb == "get" {
		body, shown := s.changed(v.resource, body)
		if !shown {
			writeJSON(w, http.StatusNotFound, metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			})
			return
		}
		writeJSON(w, http.StatusOK, body)
		return
	}
	version, _, _ := unstructured.NestedString(body, "metadata", "resourceVersion")
	items, _ := body["items"].([]any)
	told := make([]any, 0, len(items))
	for _, item := range items {
		if obj, shown := s.changed(v.resource, item.(map[string]any)); shown {
			told = append(told, obj)
		}
	}
	for _, obj := range s.inventedFor(v) {
		told = append(told, v.of(obj, version))
	}
	body["items"] = told
	writeJSON(w, http.StatusOK, body)
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

func copyAnswer(w http.ResponseWriter, code int, header http.Header, body io.Reader) {
	for name, values := range header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(code)
	_, _ = io.Copy(w, body) // the client may have gone
}

// event is one event of a watch, as it goes over the wire.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// stream is a watch that somebody has open.
type stream struct {
	view
	request *Request
	flush   func()
	cancel  func()
	// mu guards what follows.
	mu      sync.Mutex
	out     io.Writer
	version string
	ended   bool
}

// register counts a watch among those that are open, until the function that it returns is called.
func (s *Server) register(open *stream) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[open] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, open)
	}
}

// watch passes a watch on, event by event.
func (s *Server) watch(w http.ResponseWriter, r *Request, proxy *httputil.ReverseProxy) {
	asked := inJSON(r.Request)
	ctx, cancel := context.WithCancel(asked.Context())
	defer cancel()
	open := &stream{view: viewOf(r), request: r, out: w, version: r.URL.Query().Get("resourceVersion"), cancel: cancel}
	if flusher, ok := w.(http.Flusher); ok {
		open.flush = flusher.Flush
	}
	answer, err := proxy.Transport.RoundTrip(s.outgoing(asked.WithContext(ctx), proxy))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		copyAnswer(w, answer.StatusCode, answer.Header, answer.Body)
		return
	}
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusOK)
	open.flush()
	defer s.register(open)()
	for decoder := json.NewDecoder(answer.Body); ; {
		var e event
		if err := decoder.Decode(&e); err != nil {
			return
		}
		if !s.relay(open, e) {
			return
		}
	}
}

// outgoing is a request as the proxy would send it.
func (s *Server) outgoing(r *http.Request, proxy *httputil.ReverseProxy) *http.Request {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	proxy.Rewrite(&httputil.ProxyRequest{In: r, Out: out})
	return out
}

// relay hands an event on, changed if need be, and reports whether the watch goes on.
func (s *Server) relay(open *stream, e event) bool {
	var obj map[string]any
	if err := json.Unmarshal(e.Object, &obj); err != nil {
		return false
	}
	version, _, _ := unstructured.NestedString(obj, "metadata", "resourceVersion")
	first, _, _ := unstructured.NestedString(obj, "metadata", "annotations", metav1.InitialEventsAnnotationKey)
	if first == "true" {
		for _, invented := range s.inventedFor(open.view) {
			open.at(version)
			open.send("ADDED", invented, false)
		}
	}
	if s.liesAbout(open.resource) && e.Type != "BOOKMARK" && e.Type != "ERROR" {
		if e.Type == "DELETED" && s.invents(open, obj) {
			return true
		}
		obj, shown := s.changed(open.resource, obj)
		if !shown {
			return true
		}
		changed, err := json.Marshal(obj)
		if err != nil {
			return false
		}
		e.Object = changed
	}
	return open.write(e, version)
}

func (o *stream) at(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version = version
}

// send writes an event about an object, which has a version of its own or is invented.
func (o *stream) send(kind string, obj *unstructured.Unstructured, versioned bool) {
	o.mu.Lock()
	version := o.version
	o.mu.Unlock()
	if versioned {
		version = obj.GetResourceVersion()
	}
	shown := o.view.of(obj, version)
	raw, err := json.Marshal(shown)
	if err == nil {
		o.write(event{Type: kind, Object: raw}, "")
	}
}

func (o *stream) write(e event, version string) bool {
	raw, err := json.Marshal(e)
	if err != nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return false
	}
	if version != "" {
		o.version = version
	}
	_, err = io.Copy(o.out, bytes.NewReader(append(raw, '\n')))
	o.flush()
	return err == nil
}

// expired is what an API server answers that has forgotten what was before.
var expired = metav1.Status{
	TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
	Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: "too old resource version",
}

// expire ends a watch; its client lists anew. It is for who holds mu.
func (s *Server) expire(open *stream) {
	defer open.cancel()
	if raw, err := json.Marshal(expired); err == nil {
		open.write(event{Type: "ERROR", Object: raw}, "")
	}
	open.mu.Lock()
	defer open.mu.Unlock()
	open.ended = true
}
