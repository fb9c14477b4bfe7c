package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

func TestACommitBeyondABoundIsRefused(t *testing.T) {
	r := newTestRepository(t)
	files := map[string]string{"deep/er/and/deeper/web.yaml": "web", "zeros.bin": strings.Repeat("\x00", 1<<20)}
	for i := range 40 {
		files[fmt.Sprintf("many/%d.yaml", i)] = fmt.Sprint(i)
	}
	r.Commit("all", files)
	server := r.serve()
	for name, limits := range map[string]Limits{
		"the pack":                     {Pack: 500},
		"what the pack unpacks to":     {Inflated: 1 << 19},
		"one object of the pack":       {Object: 1 << 19},
		"the number of objects":        {Objects: 10},
		"the number of files":          {Files: 20},
		"how deep folders lie in each": {Depth: 2},
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, Policy{Allow: anywhere}, limits)
			if _, err := read(t, client, server.request(Ref{})); !errors.Is(err, ErrTooLarge) {
				t.Fatalf("error %v, want %v", err, ErrTooLarge)
			}
			if left, err := os.ReadDir(client.cache.dir); err != nil || len(left) > 0 {
				t.Errorf("%d folders are left (%v), want none", len(left), err)
			}
		})
	}
}

// packed makes a pack of objects as they are.
func packed(objects ...[]byte) []byte {
	var out bytes.Buffer
	out.WriteString("PACK")
	binary.Write(&out, binary.BigEndian, []uint32{2, uint32(len(objects))})
	for _, object := range objects {
		out.Write(object)
	}
	sum := sha1.Sum(out.Bytes())
	return append(out.Bytes(), sum[:]...)
}

// header is what an object of a type and a claimed size begins with.
func header(kind byte, size uint64) []byte {
	first := kind<<4 | byte(size&15)
	var out []byte
	for size >>= 4; size > 0; size >>= 7 {
		out = append(out, first|0x80)
		first = byte(size & 127)
	}
	return append(out, first)
}

func deflated(content []byte) []byte {
	var out bytes.Buffer
	writer := zlib.NewWriter(&out)
	writer.Write(content)
	writer.Close()
	return out.Bytes()
}

const commit, listing, blob, tag, offsetDelta = 1, 2, 3, 4, 6

// delta makes an object that is the difference to the one that begins back bytes before, and claims to be as large as target.
func delta(back byte, source, target uint64) []byte {
	content := binary.AppendUvarint(binary.AppendUvarint(nil, source), target)
	content = append(content, 1, 'x')
	return bytes.Join([][]byte{header(offsetDelta, uint64(len(content))), {back}, deflated(content)}, nil)
}

// taken receives a pack into a repository at dir and makes an index of it.
func taken(t *testing.T, pack []byte, dir string, limits Limits) error {
	t.Helper()
	limits = limits.withDefaults()
	file, err := receive(bytes.NewReader(pack), dir, limits)
	if err != nil {
		return err
	}
	defer file.Close()
	return index(t.Context(), file, dir, limits)
}

func TestAPackThatClaimsTooMuchIsNotUnpacked(t *testing.T) {
	small := append(header(blob, 1), deflated([]byte("x"))...)
	for name, test := range map[string]struct {
		pack []byte
		want error
	}{
		"an object that says it is huge":       {packed(append(header(blob, 1<<40), deflated([]byte("x"))...)), ErrTooLarge},
		"a difference that makes a huge one":   {packed(small, delta(byte(len(small)), 1, 1<<40)), ErrTooLarge},
		"a size that no number holds":          {packed(small, delta(byte(len(small)), 1, 1<<63)), ErrTooLarge},
		"more objects than there are":          {append([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), small...), ErrTooLarge},
		"a folder of very many names":          {packed(append(header(listing, 9<<20), deflated(names(9<<20))...)), ErrTooLarge},
		"a commit with very many words":        {packed(append(header(commit, 9<<20), deflated(make([]byte, 9<<20))...)), ErrTooLarge},
		"a tag with very many words":           {packed(append(header(tag, 9<<20), deflated(make([]byte, 9<<20))...)), ErrTooLarge},
		"objects that are missing":             {append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x05"), small...), ErrContent},
		"more content than it says":            {packed(append(header(blob, 1), deflated(make([]byte, 1<<20))...)), ErrContent},
		"a difference to what does not exist":  {packed(delta(200, 1, 1)), ErrContent},
		"a difference that has the wrong size": {packed(small, delta(byte(len(small)), 7, 9)), ErrContent},
		"no pack":                              {[]byte("hello"), ErrContent},
		"nothing":                              {nil, ErrContent},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := recovered(func() (any, error) {
				return nil, taken(t, test.pack, t.TempDir(), Limits{Object: 16 << 20, Objects: 1000})
			})
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

// names are the entries of a folder, of so many bytes, which deflate to next to nothing.
func names(size int) []byte {
	return bytes.Repeat(append([]byte("100644 web.\x00"), bytes.Repeat([]byte{7}, 20)...), size/32)
}

// manyTimes makes a difference that has the 64 KiB of the object that begins back bytes before so many times.
func manyTimes(back byte, times int) []byte {
	content := binary.AppendUvarint(binary.AppendUvarint(nil, 1<<16), uint64(times)<<16)
	content = append(content, bytes.Repeat([]byte{0x80}, times)...) // copy from the beginning, 64 KiB
	return bytes.Join([][]byte{header(offsetDelta, uint64(len(content))), {0x80, back - 128}, deflated(content)}, nil)
}

func TestAFolderThatADifferenceMakesIsMeasuredBeforeItIsDecoded(t *testing.T) {
	base := append(header(listing, 1<<16), deflated(names(1<<16))...)
	large := bytes.Repeat(names(1<<16), 200)
	hash := plumbing.ComputeHash(plumbing.TreeObject, large)
	of := []byte("tree " + hash.String() + "\nauthor Ada <ada@example.com> 1767322800 +0100\ncommitter Ada <ada@example.com> 1767322800 +0100\n\nhello\n")
	if len(base) < 128 || len(base) > 255 {
		t.Fatalf("the folder deflates to %d bytes, which the difference cannot point back", len(base))
	}
	pack := packed(base, manyTimes(byte(len(base)), 200), append(header(commit, uint64(len(of))), deflated(of)...))
	dir := t.TempDir()
	if err := taken(t, pack, dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	_, err := openCheckout(dir, Revision{Commit: plumbing.ComputeHash(plumbing.CommitObject, of).String()}, Limits{}.withDefaults(), func() {})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), `folder "."`) {
		t.Errorf("error %v, want %v that names the folder", err, ErrTooLarge)
	}
}

func TestNobodyWaitsForAPackLongerThanItIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	limits := Limits{}.withDefaults()
	file, err := receive(bytes.NewReader(packed(append(header(blob, 1), deflated([]byte("x"))...))), dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := index(ctx, file, dir, limits); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func FuzzAPackIsReceivedOrRefused(f *testing.F) {
	small := append(header(blob, 1), deflated([]byte("x"))...)
	f.Add(packed(small))
	f.Add(packed(small, delta(byte(len(small)), 1, 1)))
	f.Add([]byte("PACK"))
	limits := Limits{Object: 1 << 16, Inflated: 1 << 18, Objects: 100}
	f.Fuzz(func(t *testing.T, pack []byte) {
		_, err := recovered(func() (any, error) { return nil, taken(t, pack, t.TempDir(), limits) })
		if err != nil && !errors.Is(err, ErrContent) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("error %v is neither about the content nor about a bound", err)
		}
	})
}
