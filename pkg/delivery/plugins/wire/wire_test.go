package wire_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
)

// services are the files that have a service of PipeCD's. The numbers of the project's own service are nobody else's.
var services = []protoreflect.FileDescriptor{
	deployment.File_pkg_delivery_plugins_wire_deployment_api_proto,
	livestate.File_pkg_delivery_plugins_wire_livestate_api_proto,
	planpreview.File_pkg_delivery_plugins_wire_planpreview_api_proto,
	pipedservice.File_pkg_delivery_plugins_wire_pipedservice_service_proto,
}

// The file has what PipeCD's own descriptors say, one a line, but for what commands of other types than a stage's carry.
func TestCallsNamesNumbersAndTypesAreThoseOfPipeCD(t *testing.T) {
	listing := contract{seen: map[protoreflect.FullName]bool{}}
	for _, file := range services {
		for i := range file.Services().Len() {
			listing.service(file.Services().Get(i))
		}
	}
	slices.Sort(listing.lines)
	if diff := cmp.Diff(read(t, "testdata/contract.txt"), listing.lines); diff != "" {
		t.Errorf("what PipeCD has (-), what is here (+):\n%s", diff)
	}
}

// The file has messages that PipeCD's own types have encoded with every field set: text to the field's name, numbers to the field's number,
// an enumeration to its last value, lists and maps to one element.
func TestMessagesThatPipeCDEncodesHaveEveryFieldInItsPlace(t *testing.T) {
	decoded := 0
	for _, line := range read(t, "testdata/messages.txt") {
		name, encoded, _ := strings.Cut(line, " ")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := kind.New()
		if err := proto.Unmarshal(raw, got.Interface()); err != nil {
			t.Errorf("decode %s: %v", name, err)
			continue
		}
		for _, wrong := range misplaced(got) {
			t.Errorf("%s: %s", name, wrong)
		}
		decoded++
	}
	if decoded < 30 {
		t.Errorf("only %d messages were decoded", decoded)
	}
}

func read(t *testing.T, file string) []string {
	t.Helper()
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var lines []string
	scanner := bufio.NewScanner(opened)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// contract lists services with all messages and enumerations that they reach.
type contract struct {
	lines []string
	seen  map[protoreflect.FullName]bool
}

func (c *contract) service(service protoreflect.ServiceDescriptor) {
	for i := range service.Methods().Len() {
		method := service.Methods().Get(i)
		c.lines = append(c.lines, fmt.Sprintf("rpc /%s/%s %s -> %s", service.FullName(), method.Name(), method.Input().FullName(), method.Output().FullName()))
		c.message(method.Input())
		c.message(method.Output())
	}
}

func (c *contract) message(message protoreflect.MessageDescriptor) {
	if c.seen[message.FullName()] {
		return
	}
	c.seen[message.FullName()] = true
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		c.lines = append(c.lines, fmt.Sprintf("message %s %s %s = %d", message.FullName(), c.kind(field), field.Name(), field.Number()))
	}
}

func (c *contract) enum(enum protoreflect.EnumDescriptor) {
	if c.seen[enum.FullName()] {
		return
	}
	c.seen[enum.FullName()] = true
	for i := range enum.Values().Len() {
		value := enum.Values().Get(i)
		c.lines = append(c.lines, fmt.Sprintf("enum %s %s = %d", enum.FullName(), value.Name(), value.Number()))
	}
}

func (c *contract) kind(field protoreflect.FieldDescriptor) string {
	if field.IsMap() {
		return "map<" + c.kind(field.MapKey()) + "," + c.kind(field.MapValue()) + ">"
	}
	kind := field.Kind().String()
	if message := field.Message(); message != nil {
		c.message(message)
		kind = string(message.FullName())
	}
	if enum := field.Enum(); enum != nil {
		c.enum(enum)
		kind = string(enum.FullName())
	}
	if field.IsList() {
		kind = "repeated " + kind
	}
	return kind
}

// misplaced returns what is not as the messages of the file are filled.
func misplaced(message protoreflect.Message) []string {
	var out []string
	if unknown := message.GetUnknown(); len(unknown) > 0 {
		out = append(out, fmt.Sprintf("%s leaves %d bytes unknown", message.Descriptor().FullName(), len(unknown)))
	}
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field, value := fields.Get(i), message.Get(fields.Get(i))
		switch {
		case !message.Has(field):
			out = append(out, fmt.Sprintf("%s is not set", field.FullName()))
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				out = append(out, misfilled(field.MapValue(), value, string(field.Name()))...)
				if key.String() != string(field.Name()) {
					out = append(out, fmt.Sprintf("%s has the key %q", field.FullName(), key))
				}
				return true
			})
		case field.IsList():
			out = append(out, misfilled(field, value.List().Get(0), string(field.Name()))...)
		default:
			out = append(out, misfilled(field, value, string(field.Name()))...)
		}
	}
	return out
}

func misfilled(field protoreflect.FieldDescriptor, value protoreflect.Value, name string) []string {
	var ok bool
	switch field.Kind() {
	case protoreflect.MessageKind:
		return misplaced(value.Message())
	case protoreflect.StringKind:
		ok = value.String() == name
	case protoreflect.BytesKind:
		ok = string(value.Bytes()) == name
	case protoreflect.BoolKind:
		ok = value.Bool()
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		ok = value.Int() == int64(field.Number())
	case protoreflect.Uint32Kind:
		ok = value.Uint() == uint64(field.Number())
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		ok = value.Enum() == values.Get(values.Len()-1).Number()
	}
	if ok {
		return nil
	}
	return []string{fmt.Sprintf("%s is %v", field.FullName(), value)}
}
