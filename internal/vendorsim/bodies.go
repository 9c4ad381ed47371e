package vendorsim

// reply is the content of every normal answer, or of every chunk of one.
const reply = "ok "

// plain is the normal JSON answer.
func plain(q Request, in, out int64) string {
	switch q.Shape {
	case Responses:
		return encode(responseObject(q, "completed", responseUsage(in, out)))
	case Anthropic:
		return encode(object{
			"id": "msg_sim", "type": "message", "role": "assistant", "model": q.Model,
			"content":     []object{{"type": "text", "text": reply}},
			"stop_reason": "end_turn", "stop_sequence": nil,
			"usage": object{"input_tokens": in, "output_tokens": out},
		})
	}
	return encode(object{
		"id": "chatcmpl-sim", "object": "chat.completion", "created": 0, "model": q.Model,
		"choices": []object{{
			"index": 0, "finish_reason": "stop", "message": object{"role": "assistant", "content": reply},
		}},
		"usage": chatUsage(in, out),
	})
}

// stream is the normal answer as server-sent events with n chunks of content.
func stream(q Request, in, out int64, n int) []string {
	switch q.Shape {
	case Responses:
		return responsesStream(q, in, out, n)
	case Anthropic:
		return anthropicStream(q, in, out, n)
	}
	return chatStream(q, in, out, n)
}

func chatUsage(in, out int64) object {
	return object{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

// chatStream tells the usage only when asked: null in every chunk, then once in
// a last chunk without choices.
func chatStream(q Request, in, out int64, n int) []string {
	chunk := func(choices []object, usage any) string {
		c := object{
			"id": "chatcmpl-sim", "object": "chat.completion.chunk", "created": 0, "model": q.Model, "choices": choices,
		}
		if q.IncludeUsage {
			c["usage"] = usage
		}
		return "data: " + encode(c) + "\n\n"
	}
	var frames []string
	for range n {
		frames = append(frames, chunk([]object{{"index": 0, "delta": object{"content": reply}, "finish_reason": nil}}, nil))
	}
	frames = append(frames, chunk([]object{{"index": 0, "delta": object{}, "finish_reason": "stop"}}, nil))
	if q.IncludeUsage {
		frames = append(frames, chunk([]object{}, chatUsage(in, out)))
	}
	return append(frames, "data: [DONE]\n\n")
}

func responseUsage(in, out int64) object {
	return object{"input_tokens": in, "output_tokens": out, "total_tokens": in + out}
}

func responseObject(q Request, status string, usage any) object {
	output := []object{}
	if status == "completed" {
		output = append(output, object{
			"id": "msg_sim", "type": "message", "role": "assistant", "status": status,
			"content": []object{{"type": "output_text", "text": reply, "annotations": []object{}}},
		})
	}
	return object{
		"id": "resp_sim", "object": "response", "created_at": 0, "status": status, "model": q.Model,
		"output": output, "usage": usage,
	}
}

func event(kind string, data object) string {
	data["type"] = kind
	return "event: " + kind + "\ndata: " + encode(data) + "\n\n"
}

// responsesStream tells the usage in response.completed, always.
func responsesStream(q Request, in, out int64, n int) []string {
	frames := []string{event("response.created", object{
		"sequence_number": 0, "response": responseObject(q, "in_progress", nil),
	})}
	for i := range n {
		frames = append(frames, event("response.output_text.delta", object{
			"sequence_number": i + 1, "item_id": "msg_sim", "output_index": 0, "content_index": 0, "delta": reply,
		}))
	}
	return append(frames, event("response.completed", object{
		"sequence_number": n + 1, "response": responseObject(q, "completed", responseUsage(in, out)),
	}))
}

// anthropicStream tells the input in message_start beside a first output token,
// then twice the output so far: the counts of message_delta are cumulative, so
// a reader that adds them up counts too much.
func anthropicStream(q Request, in, out int64, n int) []string {
	frames := []string{
		event("message_start", object{"message": object{
			"id": "msg_sim", "type": "message", "role": "assistant", "model": q.Model, "content": []object{},
			"stop_reason": nil, "stop_sequence": nil,
			"usage": object{"input_tokens": in, "output_tokens": min(1, out)},
		}}),
		event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}}),
		event("ping", object{}),
	}
	for range n {
		frames = append(frames, event("content_block_delta", object{
			"index": 0, "delta": object{"type": "text_delta", "text": reply},
		}))
	}
	return append(frames,
		event("content_block_stop", object{"index": 0}),
		event("message_delta", object{
			"delta": object{"stop_reason": nil, "stop_sequence": nil}, "usage": object{"output_tokens": out / 2},
		}),
		event("message_delta", object{
			"delta": object{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": object{"output_tokens": out},
		}),
		event("message_stop", object{}),
	)
}
