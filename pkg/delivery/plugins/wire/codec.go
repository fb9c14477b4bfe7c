package wire

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// mostParts bounds how many messages and texts a message may consist of. One that is empty has two bytes on the wire, and some hundred in memory.
	mostParts = 100_000
	// mostNested bounds how deep they lie in one another.
	mostNested = 50
)

// errParts says that a message would take far more memory than it has bytes.
var errParts = fmt.Errorf("the message consists of more than %d parts, or they lie more than %d deep in one another", mostParts, mostNested)

// Codec returns protobuf's own codec, which does not read messages of more parts than anybody needs: their bytes are bounded elsewhere, and that alone does
// not bound what they take in memory. It is for both sides that read what a plugin says.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2(grpcproto.Name)} }

type codec struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, into any) error {
	message, is := into.(proto.Message)
	if !is {
		return fmt.Errorf("read what a plugin says into a %T, which is no message", into)
	}
	content := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer content.Free()
	left := mostParts
	if err := count(content.ReadOnlyData(), message.ProtoReflect().Descriptor(), mostNested, &left); err != nil {
		return err
	}
	return proto.Unmarshal(content.ReadOnlyData(), message)
}

// count takes the parts of a message from those that are left.
func count(content []byte, of protoreflect.MessageDescriptor, nested int, left *int) error {
	for len(content) > 0 {
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 {
			return protowire.ParseError(n)
		}
		content = content[n:]
		if n = protowire.ConsumeFieldValue(number, kind, content); n < 0 {
			return protowire.ParseError(n)
		}
		if kind == protowire.BytesType {
			if *left--; *left < 0 {
				return errParts
			}
			if err := countIn(content[:n], of.Fields().ByNumber(number), nested-1, left); err != nil {
				return err
			}
		}
		content = content[n:]
	}
	return nil
}

// countIn counts in a field, if that holds a message.
func countIn(value []byte, field protoreflect.FieldDescriptor, nested int, left *int) error {
	if field == nil || field.Message() == nil {
		return nil
	}
	if nested < 0 {
		return errParts
	}
	inside, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return errors.New("a field does not end")
	}
	return count(inside, field.Message(), nested, left)
}
