package simulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// serve answers a request.
func (c *Cluster) serve(w http.ResponseWriter, r *http.Request) {
	info, err := c.requests.NewRequestInfo(r)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	switch {
	case info.IsResourceRequest && info.Verb == "watch":
		c.watch(w, r, info)
	case info.IsResourceRequest:
		answer, err := c.do(r, info)
		if err != nil {
			refuse(w, err)
			return
		}
		reply(w, http.StatusOK, answer)
	case r.URL.Path == "/version":
		reply(w, http.StatusOK, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1"})
	case strings.HasPrefix(r.URL.Path, "/api"):
		if answer := discovery(strings.TrimSuffix(r.URL.Path, "/")); answer != nil {
			reply(w, http.StatusOK, answer)
			return
		}
		http.NotFound(w, r)
	default:
		fmt.Fprint(w, "ok")
	}
}

// do carries out a request about objects.
func (c *Cluster) do(r *http.Request, info *request.RequestInfo) (any, error) {
	if info.Resource == "selfsubjectrulesreviews" {
		return everything(), nil
	}
	name := types.NamespacedName{Namespace: info.Namespace, Name: info.Name}
	if info.Resource == "namespaces" {
		name.Namespace = ""
	}
	var body *unstructured.Unstructured
	if info.Verb == "create" || info.Verb == "update" {
		var err error
		if body, err = decode(r); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		body.SetNamespace(name.Namespace)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, resource := c.store(info.Resource, info.APIGroup), schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if info.Verb != "get" && info.Verb != "list" {
		c.writes[info.Verb+" "+info.Resource]++
	} else {
		c.reads[info.Verb+" "+info.Resource]++
	}
	switch info.Verb {
	case "list":
		return s.list(r, info)
	case "create":
		if s.objects[nameOf(body)] != nil {
			return nil, apierrors.NewAlreadyExists(resource, body.GetName())
		}
		return s.put(body), nil
	}
	last := s.objects[name]
	if last == nil {
		return nil, apierrors.NewNotFound(resource, name.Name)
	}
	switch info.Verb {
	case "get":
		return last, nil
	case "update":
		return s.put(body), nil
	case "patch":
		next, err := patched(last, r)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return s.put(next), nil
	case "delete":
		return s.drop(name), nil
	}
	return nil, apierrors.NewMethodNotSupported(resource, info.Verb)
}

// everything is what anybody may do.
func everything() *authorizationv1.SelfSubjectRulesReview {
	all := []string{"*"}
	return &authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectRulesReview", APIVersion: "authorization.k8s.io/v1"},
		Status: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
		},
	}
}

// decode reads the object that a request carries.
func decode(r *http.Request) (*unstructured.Unstructured, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	obj, kind, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	out := object(content)
	out.SetGroupVersionKind(*kind)
	return out, nil
}

// patched applies a patch. Server-side apply is taken for a merge: here nobody else owns fields.
func patched(last *unstructured.Unstructured, r *http.Request) (*unstructured.Unstructured, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	before, err := last.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var after []byte
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); types.PatchType(kind) {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, err
		}
		after, err = patch.Apply(before)
		if err != nil {
			return nil, err
		}
	case types.MergePatchType, types.ApplyYAMLPatchType, types.StrategicMergePatchType:
		if after, err = jsonpatch.MergePatch(before, data); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("a patch of an unknown type: " + kind)
	}
	next := &unstructured.Unstructured{}
	return next, next.UnmarshalJSON(after)
}

// selection is which objects of a store a request is about.
type selection struct {
	namespace string
	labels    labels.Selector
	name      string
}

func selectionOf(r *http.Request, info *request.RequestInfo) (out selection, err error) {
	query := r.URL.Query()
	if out.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return out, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return out, apierrors.NewBadRequest(err.Error())
	}
	out.name, _ = byField.RequiresExactMatch(metav1.ObjectNameField)
	if info.Resource != "namespaces" {
		out.namespace = info.Namespace
	}
	return out, nil
}

func (s selection) has(o *unstructured.Unstructured) bool {
	return (s.namespace == "" || s.namespace == o.GetNamespace()) && (s.name == "" || s.name == o.GetName()) &&
		s.labels.Matches(labels.Set(o.GetLabels()))
}

func (s *store) list(r *http.Request, info *request.RequestInfo) (any, error) {
	which, err := selectionOf(r, info)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, o := range s.objects {
		if which.has(o) {
			items = append(items, o.Object)
		}
	}
	kind, apiVersion := kindOf(r, info)
	return map[string]any{
		"kind": kind + "List", "apiVersion": apiVersion, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.cluster.revision, 10)},
	}, nil
}

// kindOf returns the kind in which objects are asked for.
func kindOf(r *http.Request, info *request.RequestInfo) (kind, apiVersion string) {
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}.String()
	for _, resource := range served[version] {
		if resource.resource == info.Resource {
			return resource.kind, version
		}
	}
	return "Unknown", version
}

func refuse(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err)
	errors.As(err, &status)
	reply(w, int(status.ErrStatus.Code), status.ErrStatus)
}

func reply(w http.ResponseWriter, code int, answer any) {
	if status, ok := answer.(metav1.Status); ok {
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer = status
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // who asked has gone
}
