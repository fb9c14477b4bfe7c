package simulated

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// bookmarkEvery is how often a watch is told how far it has come, as an API server tells it. Who watches takes one that says nothing for longer
// to be stuck, and lists.
const bookmarkEvery = time.Minute

// watch tells what happens until the request, the time that it asks for, or the cluster ends.
func (c *Cluster) watch(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) {
	which, err := selectionOf(r, info)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(http.StatusOK)
	encoder, flush := json.NewEncoder(w), http.NewResponseController(w).Flush
	ctx, cancel := r.Context(), func() {}
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil && seconds > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	}
	defer cancel()
	bookmarks := time.NewTicker(bookmarkEvery)
	defer bookmarks.Stop()
	c.mu.Lock()
	s := c.store(info.Resource, info.APIGroup)
	first, next := s.begin(r, info)
	c.mu.Unlock()
	for {
		for _, e := range first {
			if e.kind != watch.Bookmark && !which.has(e.object) {
				continue
			}
			if err := encoder.Encode(metav1.WatchEvent{Type: string(e.kind), Object: runtime.RawExtension{Raw: e.raw}}); err != nil {
				return
			}
		}
		if err := flush(); err != nil {
			return
		}
		c.mu.Lock()
		more := s.changed
		first, next = s.log[next:len(s.log):len(s.log)], len(s.log)
		c.mu.Unlock()
		if len(first) > 0 {
			continue
		}
		select {
		case <-more:
		case <-bookmarks.C:
			c.mu.Lock()
			if next == len(s.log) { // otherwise there is something to tell first
				first = append(first, s.bookmark(r, info, nil))
			}
			c.mu.Unlock()
		case <-ctx.Done():
			return
		case <-c.ended:
			return
		}
	}
}

// begin returns what a watch is told first, and where in the log it goes on. The caller holds the lock.
func (s *store) begin(r *http.Request, info *request.RequestInfo) (first []event, next int) {
	query := r.URL.Query()
	since, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64) // without one it begins with what there is
	initial := query.Get("sendInitialEvents") == "true"
	if since > 0 && !initial {
		next = len(s.log)
		for next > 0 && s.log[next-1].revision > since {
			next--
		}
		return nil, next
	}
	for _, o := range s.objects {
		raw, _ := o.MarshalJSON() // what came as JSON can be written as JSON
		first = append(first, event{kind: watch.Added, object: o, raw: raw})
	}
	if initial {
		first = append(first, s.bookmark(r, info, map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
	}
	return first, len(s.log)
}

// bookmark tells how far a watch has come that was told all that there is. The caller holds the lock.
func (s *store) bookmark(r *http.Request, info *request.RequestInfo, annotations map[string]string) event {
	kind, apiVersion := kindOf(r, info)
	raw, _ := json.Marshal(map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": map[string]any{ // strings always marshal
		"resourceVersion": strconv.FormatInt(s.cluster.revision, 10), "annotations": annotations,
	}})
	return event{kind: watch.Bookmark, raw: raw}
}
