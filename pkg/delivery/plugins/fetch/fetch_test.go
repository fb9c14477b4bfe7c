package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const script = "#!/bin/sh\necho hello\n"

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// entry is a file of an archive.
type entry struct {
	name, content string
	mode          int64
	kind          byte
}

func archive(t *testing.T, entries ...entry) string {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Typeflag: e.kind}
		if e.kind == tar.TypeSymlink {
			header.Linkname, header.Size, e.content = e.content, 0, ""
		}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func newCache(t *testing.T, options Options) *Cache {
	t.Helper()
	c, err := New(filepath.Join(t.TempDir(), "programs"), options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trusting are options by which a server of a test is trusted.
func trusting(server *httptest.Server) Options {
	roots := x509.NewCertPool()
	if server.Certificate() != nil {
		roots.AddCert(server.Certificate())
	}
	return Options{Roots: roots}
}

// onDisk is the URL of a new file.
func onDisk(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

func serve(t *testing.T, tls bool, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	if server.Config.ErrorLog = nil; tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

// checkOnlyHas holds the folder to the programs that it is to have, so that nothing half done is left.
func (c *Cache) checkOnlyHas(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

func checkProgram(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Fatalf("the program is %q (%v), want %q", got, err, want)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o555 {
		t.Errorf("it has the mode %v (%v), want that everybody may read and run it and nobody write", info.Mode(), err)
	}
}

func TestAProgramIsFetchedOnce(t *testing.T) {
	asked := 0
	server := serve(t, true, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, script)
	})
	c := newCache(t, trusting(server))
	source := Source{URL: server.URL + "/wait", Sha256: sumOf(script)}
	for range 2 {
		path, err := c.Get(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		checkProgram(t, path, script)
		if err := Verify(path, source.Sha256); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Fatalf("the server was asked %d times, want 1", asked)
	}
	source.Again = true
	if _, err := c.Get(t.Context(), source); err != nil || asked != 2 {
		t.Errorf("fetched again: %v, and the server was asked %d times, want 2", err, asked)
	}
	c.checkOnlyHas(t, source.Sha256)
}

func TestProgramsComeAsTheyAreOrInAnArchive(t *testing.T) {
	for name, content := range map[string]string{
		"as it is": script,
		"in an archive, among others": archive(t, entry{"bin/", "", 0o755, tar.TypeDir}, entry{"README", "read me", 0o644, tar.TypeReg},
			entry{"bin/other", "#!/bin/false", 0o755, tar.TypeReg}, entry{"bin/wait", script, 0o755, tar.TypeReg}, entry{"wait", "bin/wait", 0o777, tar.TypeSymlink}),
		"in an archive that would write elsewhere": archive(t, entry{"../../../../etc/wait", script, 0o755, tar.TypeReg}),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, Options{})
			path, err := c.Get(t.Context(), Source{URL: onDisk(t, content), Sha256: sumOf(script)})
			if err != nil {
				t.Fatal(err)
			}
			checkProgram(t, path, script)
			c.checkOnlyHas(t, sumOf(script))
		})
	}
}

func TestWhatCannotBeFetchedSaysWhyAndLeavesNothing(t *testing.T) {
	endless := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	wrong := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/something-else":
			fmt.Fprint(w, "<html>please log in</html>")
		case "/cut-off":
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, script)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		case "/to-a-file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/elsewhere":
			http.Redirect(w, r, endless.URL, http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		default:
			http.Error(w, "no such thing\x1b[2J", http.StatusNotFound)
		}
	})
	secure := serve(t, true, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, wrong.URL+"/wait", http.StatusFound) })
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	holes := archiveWithHoles(t)

	for name, test := range map[string]struct {
		url, sha256, want string
		is                error
	}{
		"another program":                              {url: wrong.URL + "/something-else", want: "what has come is " + sumOf("<html>please log in</html>"), is: ErrDiffers},
		"a part of a program":                          {url: wrong.URL + "/cut-off", want: "unexpected EOF"},
		"nothing":                                      {url: wrong.URL + "/none", want: "the server answers 404 Not Found"},
		"a program without an end":                     {url: endless.URL, want: "it is larger than 1048576 bytes"},
		"an answer that leads nowhere":                 {url: wrong.URL + "/circle", want: "the answer leads in circles"},
		"an answer that leads to a file of the server": {url: wrong.URL + "/to-a-file", want: "the answer leads from http to file, which is not followed"},
		"an answer that leads to the server itself":    {url: wrong.URL + "/elsewhere", want: "may not be called"},
		"an answer that leads to the credentials of the server's machine": {url: wrong.URL + "/metadata", want: "may not be called"},
		"an answer that leads from https to http":                         {url: secure.URL, want: "the answer leads from https to http, which is not followed"},
		"a file that is not there":                                        {url: "file:///no/such/program", want: "no such file or directory"},
		"a folder":                                                        {url: "file://" + t.TempDir(), want: "it is no file", is: ErrInvalid},
		"a pipe that nobody writes to":                                    {url: "file://" + pipe, want: "it is no file", is: ErrInvalid},
		"a device without an end":                                         {url: "file:///dev/zero", want: "it is no file", is: ErrInvalid},
		"a file of another host":                                          {url: "file://host/wait", want: "three slashes", is: ErrInvalid},
		"a scheme that there isn't":                                       {url: "gopher://host/wait", want: "must begin with file://, https://, http:// or oci://", is: ErrInvalid},
		"credentials":                                                     {url: "https://jane:hunter2@127.0.0.1/wait", want: "may not hold credentials", is: ErrInvalid},
		"credentials that are no URL":                                     {url: "https://jane:hunter2@exa mple/wait", want: "it is no URL", is: ErrInvalid},
		"no checksum":                                                     {url: "file:///bin/sh", sha256: "none", want: "64 hexadecimal digits", is: ErrInvalid},
		"a path for a checksum":                                           {url: "file:///bin/sh", sha256: "../../../../../../../../../../../../../../../../../../../etc/passwd", is: ErrInvalid, want: "64 hexadecimal digits"},
		"an archive of other programs":                                    {url: onDisk(t, archive(t, entry{"a\x1b", "A", 0o755, tar.TypeReg})), want: "what has come is a^[ with " + sumOf("A"), is: ErrDiffers},
		"an archive of no program":                                        {url: onDisk(t, archive(t, entry{"a", script, 0o644, tar.TypeReg})), want: "what has come is nothing that could be run", is: ErrDiffers},
		"an archive that unpacks without an end":                          {url: onDisk(t, archive(t, entry{"a", strings.Repeat("\x00", 2<<20), 0o755, tar.TypeReg})), want: "it is larger than 1048576 bytes"},
		"an archive with holes":                                           {url: onDisk(t, holes), want: "it is larger than 1048576 bytes"},
		"an archive of very many files":                                   {url: onDisk(t, archive(t, many(1001)...)), want: "the archive has more than 1000 entries", is: ErrInvalid},
		"what is packed otherwise":                                        {url: onDisk(t, packed(t, "text")), want: "unpack it"},
		"what only begins as if it were packed":                           {url: onDisk(t, "\x1f\x8bxx"), want: "unpack it"},
	} {
		t.Run(name, func(t *testing.T) {
			options := trusting(secure)
			options.MostBytes = 1 << 20
			c := newCache(t, options)
			sum := test.sha256
			if sum == "" {
				sum = sumOf(script)
			}
			path, err := c.Get(t.Context(), Source{URL: test.url, Sha256: sum})
			if err == nil {
				t.Fatalf("it is at %s", path)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %q, want %q in it", err, test.want)
			}
			for _, of := range []error{ErrInvalid, ErrDiffers} {
				if errors.Is(err, of) != (of == test.is) {
					t.Errorf("%v: is it %v? want %t", err, of, of == test.is)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it repeats credentials: %v", err)
			}
			c.checkOnlyHas(t)
		})
	}
}

func many(n int) (out []entry) {
	for i := range n {
		out = append(out, entry{fmt.Sprint(i), "", 0o644, tar.TypeReg})
	}
	return out
}

func packed(t *testing.T, content string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// archiveWithHoles has a file of a terabyte in an archive of some hundred bytes, in the format of GNU, which no writer of Go's makes.
func archiveWithHoles(t *testing.T) string {
	t.Helper()
	records := paxRecord("GNU.sparse.major", "1") + paxRecord("GNU.sparse.minor", "0") + paxRecord("GNU.sparse.name", "wait") +
		paxRecord("GNU.sparse.realsize", "1099511627776")
	const noPart = "1\n1099511627776\n0\n"
	return packed(t, block("PaxHeaders.0/wait", tar.TypeXHeader, records)+block("GNUSparseFile.0/wait", tar.TypeReg, noPart+strings.Repeat("\x00", 512-len(noPart)))+strings.Repeat("\x00", 1024))
}

// block is an entry of an archive: its header, and its content in blocks of 512 bytes.
func block(name string, kind byte, content string) string {
	var header [512]byte
	copy(header[0:], name)
	copy(header[100:], "0000755\x000000000\x000000000\x00")
	copy(header[124:], fmt.Sprintf("%011o\x00%011o\x00        %c", len(content), 0, kind))
	copy(header[257:], "ustar\x0000")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	return string(header[:]) + content + strings.Repeat("\x00", (512-len(content)%512)%512)
}

func paxRecord(key, value string) string {
	size := len(key) + len(value) + 3
	for n := size + len(fmt.Sprint(size)); ; n++ {
		if record := fmt.Sprintf("%d %s=%s\n", n, key, value); len(record) == n {
			return record
		}
	}
}

// The slow server holds its answer until the client has gone, so a fetch that waited for it would not end.
func TestASlowServerIsGivenUp(t *testing.T) {
	slow := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "#!")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	options := trusting(slow)
	options.Timeout = 50 * time.Millisecond
	c := newCache(t, options)
	_, err := c.Get(t.Context(), Source{URL: slow.URL, Sha256: sumOf(script)})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it has not come within 50ms") {
		t.Errorf("it says %v, want that it has not come within 50ms", err)
	}
	c.checkOnlyHas(t)

	c = newCache(t, trusting(slow))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, Source{URL: onDisk(t, script), Sha256: sumOf(script)}); !errors.Is(err, context.Canceled) {
		t.Errorf("a fetch that is called off says %v", err)
	}
}

func TestAServerThatNobodyTrustsIsNotAsked(t *testing.T) {
	asked := false
	server := serve(t, true, func(http.ResponseWriter, *http.Request) { asked = true })
	c := newCache(t, Options{})
	if _, err := c.Get(t.Context(), Source{URL: server.URL + "/wait", Sha256: sumOf(script)}); err == nil || !strings.Contains(err.Error(), "certificate") || asked {
		t.Errorf("it says %v, and asked is %t", err, asked)
	}
}

func TestAnAnswerMayLeadToAnotherPathOfTheHost(t *testing.T) {
	server := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/latest" {
			http.Redirect(w, r, "/v1", http.StatusFound)
			return
		}
		fmt.Fprint(w, script)
	})
	c := newCache(t, trusting(server))
	if _, err := c.Get(t.Context(), Source{URL: server.URL + "/latest", Sha256: sumOf(script)}); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatWasChangedIsNoticedAndReplaced(t *testing.T) {
	sum := sumOf(script)
	for name, change := range map[string]func(t *testing.T, path string){
		"by another one": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, []byte("#!/bin/evil"), 0o555))
		},
		"by a link to another one": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Symlink("/bin/sh", path))
		},
		"by a link to the same one elsewhere, where others may write": func(t *testing.T, path string) {
			elsewhere := filepath.Join(t.TempDir(), "wait")
			must(t, os.Rename(path, elsewhere))
			must(t, os.Symlink(elsewhere, path))
		},
		"so that others may write it": func(t *testing.T, path string) { must(t, os.Chmod(path, 0o777)) },
		"by a folder": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.MkdirAll(filepath.Join(path, "a"), 0o755))
		},
		"by a pipe": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, syscall.Mkfifo(path, 0o555))
		},
		"by nothing": func(t *testing.T, path string) { must(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, Options{})
			source := Source{URL: onDisk(t, script), Sha256: sum}
			path, err := c.Get(t.Context(), source)
			must(t, err)
			change(t, path)
			if err := Verify(path, sum); err == nil {
				t.Error("nothing is noticed before a start")
			}
			path, err = c.Get(t.Context(), source)
			must(t, err)
			checkProgram(t, path, script)
			must(t, Verify(path, sum))
		})
	}
}

// Somebody who may write the folder has a link wait where the program is to go.
func TestALinkInTheCacheLeadsNoWriteElsewhere(t *testing.T) {
	c := newCache(t, Options{})
	elsewhere := filepath.Join(t.TempDir(), "important")
	must(t, os.WriteFile(elsewhere, []byte("important"), 0o600))
	must(t, os.Symlink(elsewhere, filepath.Join(c.folder, sumOf(script))))
	path, err := c.Get(t.Context(), Source{URL: onDisk(t, script), Sha256: sumOf(script)})
	must(t, err)
	checkProgram(t, path, script)
	if got, err := os.ReadFile(elsewhere); err != nil || string(got) != "important" {
		t.Errorf("what the link leads to is now %q (%v)", got, err)
	}
}

func TestTheCacheIsTidied(t *testing.T) {
	c := newCache(t, Options{})
	for _, content := range []string{"A", "B"} {
		_, err := c.Get(t.Context(), Source{URL: onDisk(t, content), Sha256: sumOf(content)})
		must(t, err)
	}
	must(t, os.WriteFile(filepath.Join(c.folder, coming+"x"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(c.folder, "notes"), nil, 0o600))
	again, err := New(c.folder, Options{})
	must(t, err)
	must(t, again.Prune([]string{sumOf("B")}))
	again.checkOnlyHas(t, sumOf("B"), "notes")
}

func TestAProgramIsPinned(t *testing.T) {
	for name, test := range map[string]struct {
		content, want string
		err           string
	}{
		"as it is":                 {content: script, want: sumOf(script)},
		"in an archive":            {content: archive(t, entry{"README", "read me", 0o644, tar.TypeReg}, entry{"wait", script, 0o755, tar.TypeReg}), want: sumOf(script)},
		"in an archive of several": {content: archive(t, entry{"a", "A", 0o755, tar.TypeReg}, entry{"b", "B", 0o755, tar.TypeReg}), err: "which of these is the program? a with " + sumOf("A") + ", b with " + sumOf("B")},
		"in an archive of none":    {content: archive(t), err: "nothing that could be run"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Pin(t.Context(), onDisk(t, test.content), Options{})
			if got.Sha256 != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q and %v, want %q and %q", got.Sha256, err, test.want, test.err)
			}
		})
	}
}

func TestTheChecksumOfAnArchiveIsToldFromThatOfItsProgram(t *testing.T) {
	content := archive(t, entry{"wait", script, 0o755, tar.TypeReg})
	_, err := newCache(t, Options{}).Get(t.Context(), Source{URL: onDisk(t, content), Sha256: sumOf(content)})
	if !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "is the checksum of the archive, and that of the program in it is asked for: wait with "+sumOf(script)) {
		t.Errorf("it says %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSeveralWhoFetchAProgramAtOnceHaveIt(t *testing.T) {
	c := newCache(t, Options{})
	source := Source{URL: onDisk(t, script), Sha256: sumOf(script), Again: true}
	errs := make(chan error)
	for range 8 {
		go func() {
			path, err := c.Get(t.Context(), source)
			if err == nil {
				err = Verify(path, source.Sha256)
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	c.checkOnlyHas(t, source.Sha256)
}
