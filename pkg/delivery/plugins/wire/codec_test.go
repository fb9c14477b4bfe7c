package wire

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// live is the answer of a plugin that finds many resources.
func live(resources int) *livestate.GetLivestateResponse {
	out := &livestate.GetLivestateResponse{ApplicationLiveState: &model.ApplicationLiveState{}}
	for range resources {
		out.ApplicationLiveState.Resources = append(out.ApplicationLiveState.Resources, &model.ResourceState{})
	}
	return out
}

func TestMessagesOfMorePartsThanAnybodyNeedsAreNotRead(t *testing.T) {
	texts := &model.ResourceState{ParentIds: make([]string, mostParts+1)}
	for name, test := range map[string]struct {
		says, into proto.Message
		want       error
	}{
		"as many as there may be":    {live(mostParts - 1), &livestate.GetLivestateResponse{}, nil},
		"one more":                   {live(mostParts), &livestate.GetLivestateResponse{}, errParts},
		"as many texts, all empty":   {texts, &model.ResourceState{}, errParts},
		"keys count as well":         {keys(mostParts), &pipedservice.PutStageMetadataMultiRequest{}, errParts},
		"a large text is one part":   {&model.ResourceState{Name: string(bytes.Repeat([]byte("a"), 3<<20))}, &model.ResourceState{}, nil},
		"nothing at all":             {&model.ResourceState{}, &model.ResourceState{}, nil},
		"what nobody knows the name": {live(mostParts - 1), &model.ResourceState{}, nil}, // kept as bytes
	} {
		t.Run(name, func(t *testing.T) {
			written, err := Codec().Marshal(test.says)
			if err != nil {
				t.Fatal(err)
			}
			if err := Codec().Unmarshal(written, test.into); !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if test.want == nil && test.says.ProtoReflect().Descriptor() == test.into.ProtoReflect().Descriptor() && !proto.Equal(test.says, test.into) {
				t.Error("it is read as something else")
			}
		})
	}
}

func keys(number int) *pipedservice.PutStageMetadataMultiRequest {
	out := &pipedservice.PutStageMetadataMultiRequest{Metadata: map[string]string{}}
	for i := range number {
		out.Metadata[strconv.Itoa(i)] = ""
	}
	return out
}

func FuzzWhatIsNoMessageIsRefused(f *testing.F) {
	for _, seed := range []proto.Message{live(2), keys(2), &model.ResourceState{Name: "a"}} {
		written, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(written)
	}
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, content []byte) {
		ours, theirs := &livestate.GetLivestateResponse{}, &livestate.GetLivestateResponse{}
		err := Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(content)}, ours)
		plain := proto.Unmarshal(content, theirs)
		if err == nil && (plain != nil || !proto.Equal(ours, theirs)) {
			t.Errorf("it is read as %v, and by protobuf as %v (%v)", ours, theirs, plain)
		}
		if plain == nil && err != nil && !errors.Is(err, errParts) {
			t.Errorf("protobuf reads it, and the codec says %v", err)
		}
	})
}
