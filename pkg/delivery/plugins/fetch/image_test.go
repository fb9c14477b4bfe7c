package fetch

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// images is a registry in this process, and a repository of it.
type images struct {
	*testing.T
	server     *httptest.Server
	repository *remote.Repository
}

func newImages(t *testing.T) images {
	t.Helper()
	server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository, err := remote.NewRepository(strings.TrimPrefix(server.URL, "https://") + "/plugins/wait")
	must(t, err)
	repository.Client = &auth.Client{Client: server.Client()}
	return images{t, server, repository}
}

// push pushes an artifact of these layers.
func (i images) push(layers ...string) ocispec.Descriptor {
	i.Helper()
	var pushed []ocispec.Descriptor
	for _, layer := range layers {
		blob, err := oras.PushBytes(i.Context(), i.repository, "application/vnd.pipecd.piped.plugin", []byte(layer))
		must(i.T, err)
		pushed = append(pushed, blob)
	}
	manifest, err := oras.PackManifest(i.Context(), i.repository, oras.PackManifestVersion1_1, "application/vnd.pipecd.piped.plugin+type", oras.PackManifestOptions{Layers: pushed})
	must(i.T, err)
	return manifest
}

func (i images) tag(what ocispec.Descriptor, tag string) {
	i.Helper()
	must(i.T, i.repository.Tag(i.Context(), what, tag))
}

// index pushes one that has an artifact for each of these platforms.
func (i images) index(tag string, of map[string]ocispec.Descriptor) {
	i.Helper()
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for platform, manifest := range of {
		os, architecture, _ := strings.Cut(platform, "/")
		manifest.Platform = &ocispec.Platform{OS: os, Architecture: architecture}
		index.Manifests = append(index.Manifests, manifest)
	}
	raw, err := json.Marshal(index)
	must(i.T, err)
	_, err = oras.TagBytes(i.Context(), i.repository, ocispec.MediaTypeImageIndex, raw, tag)
	must(i.T, err)
}

func (i images) url(suffix string) string {
	return "oci://" + i.repository.Reference.Registry + "/plugins/wait" + suffix
}

func TestAProgramComesFromARegistry(t *testing.T) {
	i := newImages(t)
	one := i.push(script)
	i.tag(one, "v1")
	i.tag(i.push(archive(t, entry{"wait", script, 0o755, '0'})), "packed")
	i.index("platforms", map[string]ocispec.Descriptor{"plan9/mips": i.push("other"), runtime.GOOS + "/" + runtime.GOARCH: one})
	for name, suffix := range map[string]string{
		"by its tag":                  ":v1",
		"by its digest":               "@" + one.Digest.String(),
		"by both":                     ":v1@" + one.Digest.String(),
		"for the platform it runs on": ":platforms",
		"in an archive":               ":packed",
	} {
		t.Run(name, func(t *testing.T) {
			path, err := newCache(t, trusting(i.server)).Get(t.Context(), Source{URL: i.url(suffix), Sha256: sumOf(script)})
			must(t, err)
			checkProgram(t, path, script)
		})
	}
	if pinned, err := Pin(t.Context(), i.url(":platforms"), trusting(i.server)); err != nil || pinned.Sha256 != sumOf(script) {
		t.Errorf("pinned is %q (%v)", pinned.Sha256, err)
	}
}

func TestWhatARegistryHasNotSaysWhy(t *testing.T) {
	i := newImages(t)
	i.tag(i.push(script, "more"), "two")
	i.tag(i.push("other"), "other")
	i.tag(i.push(strings.Repeat("x", 1<<20+1)), "large")
	i.index("platforms", map[string]ocispec.Descriptor{"plan9/mips": i.push("a")})
	for name, test := range map[string]struct{ suffix, want string }{
		"no such tag":                  {":none", "not found"},
		"several layers":               {":two", "must have one layer, which is the program, and has 2"},
		"another program":              {":other", "what has come is " + sumOf("other")},
		"a large program":              {":large", "it is larger than 1048576 bytes"},
		"nothing for this platform":    {":platforms", "there is none for " + runtime.GOOS + "/" + runtime.GOARCH + ", but for plan9/mips"},
		"no name that registries have": {"/UPPER:v1", "invalid repository"},
	} {
		t.Run(name, func(t *testing.T) {
			options := trusting(i.server)
			options.MostBytes = 1 << 20
			c := newCache(t, options)
			if _, err := c.Get(t.Context(), Source{URL: i.url(test.suffix), Sha256: sumOf(script)}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v, want %q in it", err, test.want)
			}
			c.checkOnlyHas(t)
		})
	}
}
