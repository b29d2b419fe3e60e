package main

import "context"

func pause(ctx context.Context, args []string) error { return nil }
