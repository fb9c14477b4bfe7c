package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestACommitBeyondABoundIsRefused(t *testing.T) {
	r := newTestRepository(t)
	files := map[string]string{"deep/er/and/deeper/web.yaml": "web", "zeros.bin": strings.Repeat("\x00", 1<<20)}
	for i := range 40 {
		files[fmt.Sprintf("many/%d.yaml", i)] = fmt.Sprint(i)
	}
	r.commit("all", files)
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

const blob, offsetDelta = 3, 6

// delta makes an object that is the difference to the one that begins back bytes before, and claims to be as large as target.
func delta(back byte, source, target uint64) []byte {
	content := binary.AppendUvarint(binary.AppendUvarint(nil, source), target)
	content = append(content, 1, 'x')
	return bytes.Join([][]byte{header(offsetDelta, uint64(len(content))), {back}, deflated(content)}, nil)
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
		"objects that are missing":             {append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x05"), small...), ErrContent},
		"more content than it says":            {packed(append(header(blob, 1), deflated(make([]byte, 1<<20))...)), ErrContent},
		"a difference to what does not exist":  {packed(delta(200, 1, 1)), ErrContent},
		"a difference that has the wrong size": {packed(small, delta(byte(len(small)), 7, 9)), ErrContent},
		"no pack":                              {[]byte("hello"), ErrContent},
		"nothing":                              {nil, ErrContent},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := recovered(func() (any, error) {
				return nil, receive(bytes.NewReader(test.pack), t.TempDir(), Limits{Object: 1 << 20, Objects: 1000}.withDefaults())
			})
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func FuzzAPackIsReceivedOrRefused(f *testing.F) {
	small := append(header(blob, 1), deflated([]byte("x"))...)
	f.Add(packed(small))
	f.Add(packed(small, delta(byte(len(small)), 1, 1)))
	f.Add([]byte("PACK"))
	limits := Limits{Object: 1 << 16, Inflated: 1 << 18, Objects: 100}.withDefaults()
	f.Fuzz(func(t *testing.T, pack []byte) {
		_, err := recovered(func() (any, error) { return nil, receive(bytes.NewReader(pack), t.TempDir(), limits) })
		if err != nil && !errors.Is(err, ErrContent) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("error %v is neither about the content nor about a bound", err)
		}
	})
}
