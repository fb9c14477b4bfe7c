// Package wire is the protocol that delivery speaks with plugins: the packages, services, messages and numbers of PipeCD's plugins,
// version 1, so that plugins released for PipeCD need not know whom they talk to. The rooms below it are generated from the .proto files
// that stand beside them: model and source have the messages that several services share. They hold what the calls need, and leave out what
// PipeCD keeps in the same messages for its own servers.
//
// A plugin serves any of DeploymentService (package deployment), LivestateService (livestate), PlanPreviewService (planpreview) and
// DriftService (drift), which is the project's own and no plugin of PipeCD has. A service that a plugin does not serve answers Unimplemented.
// The host serves PluginService (pipedservice) to plugins.
//
// Numbers and names never change here: a message that a released plugin sends must decode. What PipeCD adds later is added under its number.
// The package "model" of the messages is registered once in a program, so nothing that links this package may link PipeCD's own.
package wire
