package api

import "fmt"

// ConfigError says which part of a Config is wrong, and what would be right.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Problem) }

// EnvError says what the machine lacks: hugepages, a permission, a port.
type EnvError struct {
	What string
	Err  error
}

func (e *EnvError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }

// Unwrap gives the cause.
func (e *EnvError) Unwrap() error { return e.Err }
