package versions

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// pages answers lists with one page after the other.
type pages struct {
	dynamic.NamespaceableResourceInterface
	asked []metav1.ListOptions
	in    []string
	texts []string
}

func (p *pages) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return p
}

func (p *pages) Namespace(in string) dynamic.ResourceInterface {
	p.in = append(p.in, in)
	return p
}

func (p *pages) List(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	text := p.texts[len(p.asked)]
	p.asked = append(p.asked, options)
	out := &unstructured.UnstructuredList{}
	return out, out.UnmarshalJSON([]byte(text))
}

const (
	first = `{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":"WorkloadVersionList","metadata":{"continue":"next"},
"errors":[{"resource":"cronjobs.batch","message":"left out\u001b[2J"}],"items":[
{"kind":"WorkloadVersion","apiVersion":"delivery.manifold.dev/v1alpha1","metadata":{"name":"web.deployment","namespace":"shop"},
"workload":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},
"clusters":[{"cluster":"east","version":"1.2","images":["web:1.2"]},{"cluster":"west","error":"policy cannot be read"}]}]}`
	second = `{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":"WorkloadVersionList","metadata":{},
"errors":[{"resource":"cronjobs.batch","message":"left out\u001b[2J"}],"items":[
{"kind":"WorkloadVersion","apiVersion":"delivery.manifold.dev/v1alpha1","metadata":{"name":"podinfo.helmrelease","namespace":"blog"},
"workload":{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","name":"podinfo"},"chart":"podinfo","clusters":[{"version":"6.1.8"}]}]}`
)

func ask(t *testing.T, client *pages, change func(*Options)) (out, errOut string) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	o := &Options{IOStreams: output.Escaped(streams), Namespace: "shop", client: client}
	change(o)
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String()
}

func TestAllPagesAreShownWithWhatCouldNotBeReadBesideThem(t *testing.T) {
	client := &pages{texts: []string{first, second}}
	out, errOut := ask(t, client, func(o *Options) { o.AllNamespaces = true })
	const want = `NAMESPACE  WORKLOAD             CLUSTER  VERSION  OF
shop       Deployment/web       east     1.2      web:1.2
shop       Deployment/web       west     -        policy cannot be read
blog       HelmRelease/podinfo  -        6.1.8    chart podinfo
`
	if out != want {
		t.Errorf("shown is\n%swant\n%s", out, want)
	}
	if errOut != "Warning: cronjobs.batch: left out^[[2J\n" {
		t.Errorf("told is %q", errOut)
	}
	if client.asked[0].Continue != "" || client.asked[1].Continue != "next" || !slices.Equal(client.in, []string{""}) {
		t.Errorf("asked in %q for %+v", client.in, client.asked)
	}
}

func TestOneListIsPrintedForPrograms(t *testing.T) {
	out, errOut := ask(t, &pages{texts: []string{first, second}}, func(o *Options) { o.Output = output.JSON })
	var list v1alpha1.WorkloadVersionList
	if err := json.NewDecoder(bytes.NewBufferString(out)).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || len(list.Errors) != 1 || list.Kind != "WorkloadVersionList" || list.Continue != "" || errOut != "" {
		t.Errorf("printed %+v, told %q", list, errOut)
	}
}

func TestWhatIsSelectedGoesToTheServer(t *testing.T) {
	client := &pages{texts: []string{second}}
	ask(t, client, func(o *Options) {
		o.Chart, o.Image, o.Cluster, o.Kind, o.Selector = "podinfo", "web:1", "east", "HelmRelease", "app=web"
	})
	const want = "chart=podinfo,cluster=east,image=web:1,workload.kind=HelmRelease"
	if got := client.asked[0]; got.FieldSelector != want || got.LabelSelector != "app=web" || client.in[0] != "shop" {
		t.Errorf("asked in %q for %+v, want %s", client.in, got, want)
	}
}
