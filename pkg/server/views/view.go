// Package views serves the logical cluster as each of its clusters is to see it, below a path for each: https://HOST/clusters/NAME.
//
// The path is taken off at the outside, and the cluster goes along in the request's context: so authentication, authorization, audit, admission,
// and priority and fairness work on the request exactly as on the plain path. Behind them, a second filter asks for the right to use the view, and
// refuses what would not be that cluster's alone. What is read and written is changed by the storage (pkg/server/storage/views).
package views

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/audit"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

type key struct{}

// With returns a context of a request that goes through the view of a cluster.
func With(ctx context.Context, cluster string) context.Context {
	return context.WithValue(ctx, key{}, cluster)
}

// From returns the cluster through whose view a request goes, false for one on the plain path.
func From(ctx context.Context) (cluster string, ok bool) {
	cluster, ok = ctx.Value(key{}).(string)
	return cluster, ok
}

// auditKey is the annotation of audit events that names the cluster through whose view a request came. Their paths are those without it.
const auditKey = "view.manifold.dev/cluster"

// Strip takes the view off the paths of requests, and notes it in their contexts and for the audit, which so tells of those as well that are refused before
// they come to the Handler. It belongs at the outside of the stock chain.
func Strip(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cluster, rest, ok := v1alpha1.CutViewPath(r.URL.Path)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		ctx := audit.WithAuditContext(With(r.Context(), cluster)) // the stock chain goes on with the one that it finds
		audit.AddAuditAnnotation(ctx, auditKey, cluster)
		plain := r.WithContext(ctx)
		plain.URL = new(url.URL)
		*plain.URL = *r.URL
		plain.URL.Path = rest
		if r.URL.RawPath != "" {
			raw, rest, ok := v1alpha1.CutViewPath(r.URL.RawPath)
			if !ok || raw != cluster {
				http.Error(w, "the name of the cluster in the path is not to be escaped", http.StatusBadRequest)
				return
			}
			plain.URL.RawPath = rest
		}
		next.ServeHTTP(w, plain)
	})
}
