// Package workloads tells which version of each workload every cluster holds, to whoever may list the workloads.
//
// Nothing of it is stored: each answer is computed from what there is. A caller sees what they may list, namespace by namespace, and what cannot be
// read is told beside what can.
package workloads

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/registry/table"
)

const (
	// mostItems bounds a page, and is its size where nobody asks for less.
	mostItems = 500
	// mostLookedAt bounds what is looked at for a page. A selector may leave out nearly all of it.
	mostLookedAt = 5000
	// longestError bounds what a page says of one error.
	longestError = 1024
)

// REST answers lists of versions.
type REST struct {
	sources    []source
	authorizer authorizer.Authorizer
	// known reports whether what the sources read from memory has been read.
	known func() bool
	table rest.TableConvertor
}

var (
	_ rest.Lister               = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
)

// New returns an empty item.
func (r *REST) New() runtime.Object { return &v1alpha1.WorkloadVersion{} }

// NewList returns an empty list.
func (r *REST) NewList() runtime.Object { return &v1alpha1.WorkloadVersionList{} }

// Destroy does nothing.
func (r *REST) Destroy() {}

// NamespaceScoped reports that workloads are in namespaces.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName returns the name of one.
func (r *REST) GetSingularName() string { return "workloadversion" }

// ShortNames are what kubectl takes in place of the resource's name.
func (r *REST) ShortNames() []string { return []string{"wv"} }

// List returns a page of what the caller may see.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("nobody is known to have asked"))
	}
	if !r.known() {
		return nil, apierrors.NewServiceUnavailable("the workloads of the logical cluster are being read, try again")
	}
	asked, err := queryOf(request.NamespaceValue(ctx), options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	page := &page{query: asked, out: &v1alpha1.WorkloadVersionList{Items: []v1alpha1.WorkloadVersion{}}}
	for i := asked.from.Source; i < len(r.sources) && !page.full; i++ {
		if source := r.sources[i]; asked.kinds(source.kinds) {
			page.read(ctx, i, source, &rights{authorizer: r.authorizer, user: caller, may: map[right]bool{}})
		}
	}
	return page.out, nil
}

// ConvertToTable shows a list as rows, and what could not be read as warnings.
func (r *REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	if list, ok := object.(*v1alpha1.WorkloadVersionList); ok {
		for _, e := range list.Errors {
			where := ""
			if e.Namespace != "" {
				where = fmt.Sprintf(" in namespace %q", e.Namespace)
			}
			warning.AddWarning(ctx, "", e.Resource+where+": "+e.Message)
		}
	}
	return r.table.ConvertToTable(ctx, object, options)
}

func columns() rest.TableConvertor {
	return table.New(append([]table.Column[*v1alpha1.WorkloadVersion]{
		table.Text("Kind", "The kind of the workload.", func(v *v1alpha1.WorkloadVersion) string { return v.Workload.Kind }),
		table.Text("Versions", "The versions, each with the clusters that hold it.", Versions),
	}, table.WhenWide(
		table.Text("Chart", "The chart that is installed.", func(v *v1alpha1.WorkloadVersion) string {
			if v.Chart == "" {
				return table.None
			}
			return v.Chart
		}),
	)...)...)
}

// Versions says which versions of a workload there are, each with the clusters that hold it.
func Versions(v *v1alpha1.WorkloadVersion) string {
	var order []string
	in := map[string][]string{}
	for _, c := range v.Clusters {
		said := c.Version
		if said == "" {
			said = table.Unknown
		}
		if _, before := in[said]; !before {
			order = append(order, said)
			in[said] = nil
		}
		if c.Cluster != "" {
			in[said] = append(in[said], c.Cluster)
		}
	}
	parts := make([]string, 0, len(order))
	for _, version := range order {
		if clusters := in[version]; len(clusters) > 0 {
			version += " (" + strings.Join(clusters, ", ") + ")"
		}
		parts = append(parts, version)
	}
	return strings.Join(parts, ", ")
}

// page is what is answered with.
type page struct {
	query
	out *v1alpha1.WorkloadVersionList
	// lookedAt is how much has been, and full tells that no more is.
	lookedAt int
	full     bool
}

// read adds what a source has.
func (p *page) read(ctx context.Context, number int, of source, rights *rights) {
	found, problems := of.list(ctx, p.namespace, rights)
	for _, problem := range problems {
		p.failed(problem)
	}
	after := ""
	if number == p.from.Source {
		after = p.from.After
	}
	for _, f := range found {
		if f.key() <= after {
			continue
		}
		if len(p.out.Items) >= p.limit || p.lookedAt >= mostLookedAt {
			p.full = true
			p.out.Continue = position{Source: number, After: after}.token()
			return
		}
		after = f.key()
		p.lookedAt++
		if !p.labels.Matches(f.labels) {
			continue
		}
		if version := f.version(); p.fits(&version) {
			p.out.Items = append(p.out.Items, version)
		}
	}
}

// failed tells what could not be read, on the first page that meets it.
func (p *page) failed(problem v1alpha1.VersionsError) {
	problem.Message = text.Line(problem.Message, longestError)
	p.out.Errors = append(p.out.Errors, problem)
}
