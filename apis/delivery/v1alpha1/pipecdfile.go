package v1alpha1

import "strings"

// PipecdFile is how PipeCD calls the application file in a folder, unless it is told another name.
const PipecdFile = "app.pipecd.yaml"

// IsPipecdFile reports whether PipeCD would take a file of this name, which is without a path, for an application file. The last of these names is an old one.
func IsPipecdFile(name string) bool {
	return strings.HasSuffix(name, ".pipecd.yaml") || name == ".pipe.yaml"
}

// ApplicationFile is the name of the application file of a source, be it there or not. The source may be nil.
func (s *GitSource) ApplicationFile() string {
	if s == nil || s.Pipecd == nil || s.Pipecd.File == "" {
		return PipecdFile
	}
	return s.Pipecd.File
}
