package promotion

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: out}
}

const (
	sha       = "0123456789abcdef0123456789abcdef01234567"
	sha256hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func pods(images ...string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: prod, name: web}, spec: {replicas: 3, template: {spec: {containers: [" + containers(images) + "]}}}}"
}

func containers(images []string) string {
	var out []string
	for _, image := range images {
		out = append(out, `{name: c, image: "`+image+`"}`)
	}
	return strings.Join(out, ", ")
}

func TestWhatIsWrittenIntoAWorkload(t *testing.T) {
	shop := map[string]string{"ghcr.io/shop/web": ":2", "localhost:5000/api": "@sha256:abc"}
	for name, test := range map[string]struct {
		object  string
		version Version
		want    string // "" for an error
		err     string
	}{
		"images of the repository, and no others": {pods("ghcr.io/shop/web:1", "ghcr.io/shop/web2:1", "ghcr.io/shop/web@sha256:old", "localhost:5000/api"), Version{Images: shop}, pods("ghcr.io/shop/web:2", "ghcr.io/shop/web2:1", "ghcr.io/shop/web:2", "localhost:5000/api@sha256:abc"), ""},
		"no image of the repository":              {pods("ghcr.io/shop/other:1"), Version{Images: shop}, "", "Deployment prod/web: none of its containers has an image of ghcr.io/shop/web, localhost:5000/api"},
		"a tag that nothing runs any more":        {pods("ghcr.io/shop/web:1", "localhost:5000/api:1"), Version{Revision: "0"}, pods("ghcr.io/shop/web:0", "localhost:5000/api:0"), ""},
		"tags in their order":                     {pods("ghcr.io/shop/web:2", "docker.io/envoy:7", "ghcr.io/shop/tool:2"), Version{Revision: "1,6"}, pods("ghcr.io/shop/web:1", "docker.io/envoy:6", "ghcr.io/shop/tool:1"), ""},
		"fewer tags than there are":               {pods("ghcr.io/shop/web:2", "docker.io/envoy:7"), Version{Revision: "1"}, "", "it has images with 2 different tags, and the version, which nothing runs any more, has 1"},
		"what is no tag":                          {pods("ghcr.io/shop/web:2"), Version{Revision: "2 --privileged"}, "", "is no tag of an image"},
		"containers that begin first, of a CronJob": {
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {initContainers: [" + containers([]string{"ghcr.io/shop/web:1"}) + "]}}}}}}", Version{Images: shop},
			"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {initContainers: [" + containers([]string{"ghcr.io/shop/web:2"}) + "]}}}}}}", "",
		},
		"a container that is none": {"{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {containers: [x]}}}}", Version{Images: shop}, "", "spec.template.spec.containers[0] is no object"},
		"the commit of an Application": {
			"{apiVersion: delivery.manifold.dev/v1alpha1, kind: Application, spec: {source: {git: {url: u, ref: {branch: main}}}}}", Version{Revision: "main@sha1:" + sha},
			"{apiVersion: delivery.manifold.dev/v1alpha1, kind: Application, spec: {source: {git: {url: u, ref: {commit: \"" + sha + "\"}}}}}", "",
		},
		"the name of a revision of an Application": {
			"{apiVersion: delivery.manifold.dev/v1alpha1, kind: Application, metadata: {namespace: prod, name: web}, spec: {source: {git: {url: u, ref: {branch: main}}}}}", Version{Revision: "web-v3"},
			"", "Application prod/web: version web-v3 names no commit",
		},
		"an Application of something else": {"{apiVersion: delivery.manifold.dev/v1alpha1, kind: Application, spec: {source: {inline: {}}}}", Version{Revision: "v1"}, "", "its source is no git repository"},
		"tag and digest of an artifact": {
			"{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, spec: {ref: {semver: '*'}}}", Version{Revision: "6.1.8@sha256:" + sha256hex},
			"{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, spec: {ref: {tag: 6.1.8, digest: 'sha256:" + sha256hex + "'}}}", "",
		},
		"a chart of a repository":             {"{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, spec: {version: '1'}}", Version{Revision: "2"}, "{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, spec: {version: '2'}}", ""},
		"a repository, of no commit":          {"{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, spec: {}}", Version{Revision: "v1"}, "", "revision v1 names no commit"},
		"what has no version":                 {"{apiVersion: v1, kind: Secret}", Version{Revision: "v1"}, "", "no version can be written into one"},
		"a chart that is not as it should be": {"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, spec: x}", Version{Revision: "1"}, "", "HelmRelease"},
	} {
		t.Run(name, func(t *testing.T) {
			object := objectOf(t, test.object)
			changed, err := Edit(object, test.version)
			if (err != nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("it says %v, want %q", err, test.err)
			}
			if err != nil {
				return
			}
			if !changed || jsonOf(t, object) != jsonOf(t, objectOf(t, test.want)) {
				t.Errorf("it is %s, want %s", jsonOf(t, object), test.want)
			}
			if again, err := Edit(object, test.version); err != nil || again && test.version.Images != nil {
				t.Errorf("written again it changes something: %v", err)
			}
		})
	}
}

func TestWhereTheVersionOfAWorkloadIs(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   Reference
	}{
		"in itself":            {pods("a:1"), Reference{}},
		"in its chart":         {"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, spec: {chart: {}}}", Reference{}},
		"in a chart elsewhere": {"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: prod}, spec: {chartRef: {kind: OCIRepository, name: web}}}", Reference{ociRepository, "prod", "web"}},
		"in its source":        {"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: prod}, spec: {sourceRef: {kind: GitRepository, name: web, namespace: flux}}}", Reference{gitRepository, "flux", "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, elsewhere := VersionIn(objectOf(t, test.object)); got != test.want || elsewhere != (test.want != Reference{}) {
				t.Errorf("it is in %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestWhatARevisionStandsFor(t *testing.T) {
	p := chain(direct, "3", "2", "1")
	if got := VersionsOf(p, 1, "3").All(); !maps.Equal(got.Images, map[string]string{"ghcr.io/shop/web": ":3"}) {
		t.Errorf("images are %v", got.Images)
	}
	if got := VersionsOf(p, 2, "0").All(); got.Revision != "0" || got.Images != nil {
		t.Errorf("of what nothing runs it is %+v", got)
	}
	p.Status.Environments["dev"].Targets[0].Workloads = append(p.Status.Environments["dev"].Targets[0].Workloads,
		weave.WorkloadStatus{Kind: "CronJob", Name: "clean", Version: "7", Images: []string{"ghcr.io/shop/web:7"}})
	list := "CronJob/clean=7;Deployment/web=3"
	for _, of := range []Versions{VersionsOf(p, 1, list), VersionsOf(chain(direct, "1", "1"), 1, list)} {
		job, err := of.Of("CronJob", "clean")
		web, other := of.Of("Deployment", "web")
		if err != nil || other != nil || job.Revision != "7" || web.Revision != "3" {
			t.Errorf("they are %+v and %+v: %v, %v", job, web, err, other)
		}
		if _, err := of.Of("Deployment", "api"); err == nil || !strings.Contains(err.Error(), "says nothing of Deployment api") {
			t.Errorf("of what is not listed it says %v", err)
		}
	}
	if got, err := VersionsOf(p, 1, "feature/x=1;y@sha1:"+sha).Of("Kustomization", "web"); err != nil || got.Revision != "feature/x=1;y@sha1:"+sha {
		t.Errorf("a branch is taken for a list: %+v, %v", got, err)
	}
}

func FuzzImages(f *testing.F) {
	for _, image := range []string{"web", "web:1", "localhost:5000/web", "localhost:5000/web:1@sha256:a", "@", ":", "a@b:c"} {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image string) {
		repository, rest := SplitImage(image)
		if repository+rest != image {
			t.Errorf("%q is %q and %q", image, repository, rest)
		}
		if again, more := SplitImage(repository); again != repository && !strings.ContainsAny(more, ":@") {
			t.Errorf("%q has the repository %q", repository, again)
		}
	})
}
