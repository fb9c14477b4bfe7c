// Package pipecd reads the application files of PipeCD, app.pipecd.yaml, in all their spellings: of kind KubernetesApp, of kind Application with
// plugins, and what has been proposed in between.
//
// It makes of a file the spec of an Application. What PipeCD has and Manifold does not is listed with its path, and what neither has is an error:
// nothing is passed over in silence.
package pipecd
