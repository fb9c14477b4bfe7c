// Command protos generates Go from the .proto files below a folder, beside them in files named zz_generated.*: messages by protoc-gen-go,
// services by protoc-gen-go-grpc, which are the tools that go.mod names. It compiles the files itself, so that nothing but Go need be
// installed. Files import one another by their paths from the working directory. Equal files give equal Go.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protos FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "generate Go from the .proto files in %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	files, err := protos(folder)
	if err != nil {
		return err
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files, Parameter: proto.String("paths=source_relative"), ProtoFile: descriptors(compiled),
	}
	for _, tool := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := generate(ctx, tool, request); err != nil {
			return fmt.Errorf("%s: %w", tool, err)
		}
	}
	return nil
}

// protos returns the paths of the .proto files below the folder, in order.
func protos(folder string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".proto" {
			found = append(found, filepath.ToSlash(path))
		}
		return err
	})
	if err == nil && len(found) == 0 {
		err = errors.New("there are none")
	}
	return found, err
}

// descriptors returns the files and all that they import, each after what it imports itself, as generators ask for.
func descriptors(files linker.Files) []*descriptorpb.FileDescriptorProto {
	var out []*descriptorpb.FileDescriptorProto
	var seen []string
	var add func(protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if slices.Contains(seen, file.Path()) {
			return
		}
		seen = append(seen, file.Path())
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).FileDescriptor)
		}
		out = append(out, protoutil.ProtoFromFileDescriptor(file))
	}
	for _, file := range files {
		add(file)
	}
	return out
}

// generate hands the request to a generator and writes the files that it answers with.
func generate(ctx context.Context, tool string, request *pluginpb.CodeGeneratorRequest) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "tool", tool)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	output, err := command.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, file := range response.GetFile() {
		dir, name := filepath.Split(filepath.FromSlash(file.GetName()))
		if err := os.WriteFile(filepath.Join(dir, "zz_generated."+name), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
