// Package podwebhooks answers clusters that ask about pods which controllers are about to make there: what the webhooks of the logical cluster
// would say of them, and make of them.
//
// A cluster asks by a webhook that joining registers there, with a token that is for this alone. Nothing that it says of a pod is believed: which
// workload the pod is of, and what that makes of it, is known above, and webhooks see what will be shown above.
package podwebhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/syncer"
)

const (
	// mostBody bounds a question: API servers store objects of half of that at most.
	mostBody = 3 << 20
	// mostAtOnce is how many questions of one cluster are worked on at a time. Others wait for their turn.
	mostAtOnce = 64
	// answerWithin is how long an answer may take, a moment less than the cluster waits for it.
	answerWithin = podhooks.Timeout - time.Second
)

// LogicalCluster knows what is asked about.
type LogicalCluster interface {
	// Accepts reports whether a cluster asks by a token that it has been given.
	Accepts(cluster, token string) bool
	// Newcomer is that of the syncer of a cluster.
	Newcomer(ctx context.Context, cluster string, pod *corev1.Pod) (*syncer.Newcomer, error)
}

// Admission is the part of the logical cluster's admission that is asked.
type Admission interface {
	// Admit returns a pod, and what becomes of it if a controller of that kind makes it. Both have been converted alike. The error is an
	// apierrors.APIStatus if it is refused. Without a name yet is a pod whose name the API server chooses.
	Admit(ctx context.Context, pod *corev1.Pod, controller schema.GroupVersionKind, named, dryRun bool) (before, after *corev1.Pod, err error)
}

// Handler answers clusters.
type Handler struct {
	logical   LogicalCluster
	admission Admission
	next      http.Handler

	mu    sync.Mutex
	slots map[string]chan struct{} // by cluster
}

// New returns a handler for the questions of clusters, which passes everything else on.
func New(logical LogicalCluster, admission Admission, next http.Handler) *Handler {
	return &Handler{logical: logical, admission: admission, next: next, slots: map[string]chan struct{}{}}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cluster, token, ok := podhooks.CutPath(r.URL.Path)
	switch {
	case !podhooks.IsPath(r.URL.Path):
		h.next.ServeHTTP(w, r)
		return
	case !ok || !h.logical.Accepts(cluster, token):
		// Whether there is such a cluster is nobody's business.
		http.Error(w, "no cluster asks like this; joining it again with --pod-webhooks makes a new token", http.StatusForbidden)
		return
	case r.Method != http.MethodPost:
		http.Error(w, "only POST is answered", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	release, err := h.take(ctx, cluster)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	}
	defer release()
	request, code, err := read(w, r)
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	response, err := h.answer(ctx, cluster, request)
	if err != nil {
		// Nobody can say, so it is for the failurePolicy of the webhook in the cluster.
		klog.FromContext(ctx).V(2).Info("Cannot answer about a pod yet", "cluster", cluster, "namespace", request.Namespace, "err", err)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	response.UID = request.UID
	content, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: response,
	})
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content) // who does not listen any more has not been told
}

// take waits until fewer questions of a cluster are worked on.
func (h *Handler) take(ctx context.Context, cluster string) (release func(), err error) {
	h.mu.Lock()
	slots, ok := h.slots[cluster]
	if !ok {
		slots = make(chan struct{}, mostAtOnce)
		h.slots[cluster] = slots
	}
	h.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("cluster %q asks about more than %d pods at a time", cluster, mostAtOnce)
	}
}

func read(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionRequest, int, error) {
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the question is longer than %d bytes", mostBody)
	}
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("read the question: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(content, &review); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("the question is no AdmissionReview: %w", err)
	}
	if review.Request == nil || review.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return nil, http.StatusBadRequest, fmt.Errorf("the question is no AdmissionReview of %s with a request", admissionv1.SchemeGroupVersion)
	}
	return review.Request, 0, nil
}

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

// answer returns what the logical cluster says of a request, or an error if that is not known.
func (h *Handler) answer(ctx context.Context, cluster string, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.Kind != podKind || request.Operation != admissionv1.Create || request.SubResource != "" {
		return allowed(), nil
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return refused(apierrors.NewBadRequest(fmt.Sprintf("the pod cannot be read: %v", err))), nil
	}
	if pod.Namespace != "" && pod.Namespace != request.Namespace {
		return refused(apierrors.NewBadRequest("the pod is of another namespace than the request")), nil
	}
	pod.Namespace = request.Namespace
	named := pod.Name != ""
	if !named {
		// It is chosen here, so that what is said of this pod is said of no other.
		pod.Name = names.SimpleNameGenerator.GenerateName(pod.GenerateName)
	}
	newcomer, err := h.logical.Newcomer(ctx, cluster, pod)
	var misplaced *syncer.NotPlacedError
	switch {
	case errors.As(err, &misplaced):
		return refused(apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("the logical cluster has no such pod in cluster %q: %w", cluster, err))), nil
	case err != nil:
		return nil, err
	case newcomer == nil:
		return allowed(), nil
	}
	before, after, err := h.admission.Admit(ctx, newcomer.Shown, newcomer.Controller, named, request.DryRun != nil && *request.DryRun)
	if err != nil {
		return refused(err), nil
	}
	change, err := mirror.Change(before, after)
	if err != nil {
		return refused(apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("webhooks of the logical cluster have changed what they cannot: %w", err))), nil
	}
	if len(change) == 0 {
		return allowed(), nil
	}
	if len(change) > podhooks.MaxChange {
		return refused(apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("webhooks of the logical cluster have changed %d bytes of it, "+
			"which is more than the %d that Manifold carries to a cluster", len(change), podhooks.MaxChange))), nil
	}
	patch, err := patchFor(request.Object.Raw, change, pod.Name, newcomer.Sealed(change))
	if err != nil {
		return refused(apierrors.NewInternalError(err)), nil
	}
	response := allowed()
	jsonPatch := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = patch, &jsonPatch
	return response, nil
}

func allowed() *admissionv1.AdmissionResponse { return &admissionv1.AdmissionResponse{Allowed: true} }

func refused(err error) *admissionv1.AdmissionResponse {
	status := &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	if known, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // what admission returns is not wrapped
		own := known.Status()
		status.Code, status.Reason = own.Code, own.Reason
	}
	return &admissionv1.AdmissionResponse{Result: status}
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patchFor returns the JSON patch that makes of a pod, as the cluster has it, what webhooks have made of it, under its name and with the proof. What
// this version does not know of the pod stays.
func patchFor(raw, change []byte, name, sealed string) ([]byte, error) {
	changed, err := mirror.ApplyChange(raw, change)
	if err != nil {
		return nil, err
	}
	var pod struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
			Finalizers  []string          `json:"finalizers"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(changed, &pod); err != nil {
		return nil, fmt.Errorf("read the pod as it was changed: %w", err)
	}
	meta := &pod.Metadata
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	if meta.Finalizers == nil {
		meta.Finalizers = []string{}
	}
	meta.Annotations[v1alpha1.AnnotationAdmitted] = sealed
	return json.Marshal([]operation{
		{"add", "/metadata/name", name},
		{"add", "/metadata/labels", meta.Labels},
		{"add", "/metadata/annotations", meta.Annotations},
		{"add", "/metadata/finalizers", meta.Finalizers},
		{"add", "/spec", pod.Spec},
	})
}
