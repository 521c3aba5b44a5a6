// The events of a turn as pi's stream of an assistant message.

import {
	type Api,
	type AssistantMessage,
	type AssistantMessageEventStream,
	createAssistantMessageEventStream,
	type Model,
	type TextContent,
	type ThinkingContent,
	type ToolCall,
} from "@earendil-works/pi-ai/compat";

/** A message that grows by the events of one turn. */
export class Growing {
	readonly stream: AssistantMessageEventStream = createAssistantMessageEventStream();
	private message: AssistantMessage;
	private started = false;
	private over = false;
	/** The place of the block that grows, if one does. */
	private open?: number;

	constructor(model: Model<Api>) {
		this.message = {
			role: "assistant",
			content: [],
			api: model.api,
			provider: model.provider,
			model: model.id,
			usage: usage({}),
			stopReason: "pending",
			timestamp: Date.now(),
		};
	}

	/** The turn was taken. */
	start(): void {
		if (this.started || this.over) return;
		this.started = true;
		this.stream.push({ type: "start", partial: this.message });
	}

	/** Takes an event; true with the last one. */
	take(event: any): boolean {
		if (this.over) return true;
		this.start();
		const { message, stream } = this;
		switch (event.kind) {
			case "text":
			case "thinking":
				this.grow(event.kind, event.text);
				return false;
			case "toolCallStart": {
				this.settle();
				const call: ToolCall = { type: "toolCall", id: event.call, name: event.tool, arguments: {} };
				message.content.push(call);
				stream.push({ type: "toolcall_start", contentIndex: message.content.length - 1, partial: message });
				return false;
			}
			case "toolCallDelta": {
				const contentIndex = message.content.length - 1;
				stream.push({ type: "toolcall_delta", contentIndex, delta: event.json, partial: message });
				return false;
			}
			case "toolCallEnd": {
				const contentIndex = message.content.length - 1;
				const toolCall = message.content[contentIndex] as ToolCall;
				toolCall.arguments = event.arguments;
				stream.push({ type: "toolcall_end", contentIndex, toolCall, partial: message });
				return false;
			}
			case "end":
				this.end(event);
				return true;
			default:
				return false;
		}
	}

	/** It fails, or was given up. */
	fail(reason: string, aborted = false): void {
		if (this.over) return;
		this.over = true;
		this.settle();
		const stop = aborted ? "aborted" : "error";
		this.message.stopReason = stop;
		this.message.errorMessage = reason;
		this.stream.push({ type: "error", reason: stop, error: this.message });
		this.stream.end();
	}

	private end(event: any): void {
		this.message.usage = usage(event.usage ?? {});
		if (event.stop === "error" || event.stop === "aborted") {
			this.fail(event.reason ?? event.stop, event.stop === "aborted");
			return;
		}
		this.settle();
		this.over = true;
		const stop = event.stop === "toolUse" ? "toolUse" : "stop";
		this.message.stopReason = stop;
		this.stream.push({ type: "done", reason: stop, message: this.message });
		this.stream.end();
	}

	private grow(kind: "text" | "thinking", delta: string): void {
		const { message, stream } = this;
		const open = this.open === undefined ? undefined : message.content[this.open];
		if (open?.type !== kind) {
			this.settle();
			message.content.push(kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "" });
			this.open = message.content.length - 1;
			stream.push({ type: `${kind}_start`, contentIndex: this.open, partial: message });
		}
		const contentIndex = this.open as number;
		const block = message.content[contentIndex] as TextContent & ThinkingContent;
		if (kind === "text") block.text += delta;
		else block.thinking += delta;
		stream.push({ type: `${kind}_delta`, contentIndex, delta, partial: message });
	}

	/** The block that grows is whole. */
	private settle(): void {
		if (this.open === undefined) return;
		const contentIndex = this.open;
		this.open = undefined;
		const block = this.message.content[contentIndex];
		if (block.type === "text") {
			this.stream.push({ type: "text_end", contentIndex, content: block.text, partial: this.message });
		} else if (block.type === "thinking") {
			this.stream.push({ type: "thinking_end", contentIndex, content: block.thinking, partial: this.message });
		}
	}
}

function usage(told: any): AssistantMessage["usage"] {
	const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = told;
	return {
		input,
		output,
		cacheRead,
		cacheWrite,
		totalTokens: input + output + cacheRead + cacheWrite,
		// What an agent costs is its own account.
		cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
	};
}
