// The child process `toolway bridge`, and its protocol: JSON-RPC 2.0, one message a line (docs/host-protocol.md of
// Toolway). Knows nothing of pi.

import { type ChildProcess, spawn } from "node:child_process";

type Json = Record<string, any>;

/** What a program needs of the names in use. */
export interface Profile {
	toolPrefix: string;
	skillTool: string;
	displayTool: string;
	replayPrefix: string;
	runPrefix: string;
}

export interface BridgeOptions {
	command: string;
	arguments: string[];
	cwd: string;
	version: string;
	ui: boolean;
	onNotification(method: string, params: any): void;
	/** It ended by itself; what it said last is in the text. */
	onEnd(reason: string): void;
}

/** An answer of the bridge that is an error. */
export class BridgeFault extends Error {
	constructor(
		message: string,
		readonly code: number,
	) {
		super(message);
	}
}

/** The longest that the bridge may take to end after it was asked to, in milliseconds. It takes two seconds at most. */
const PATIENCE = 4000;
/** How much of what it writes to stderr is kept for an error. */
const KEPT = 4000;

export class Bridge {
	profile!: Profile;
	turns = false;
	private process: ChildProcess;
	private waiting = new Map<number, { resolve(value: any): void; reject(error: Error): void }>();
	private last = 0;
	private rest: Buffer[] = [];
	private said = "";
	private over?: string;
	private ended: Promise<void>;

	/** Starts it and says hello. */
	static async start(options: BridgeOptions): Promise<Bridge> {
		const bridge = new Bridge(options);
		try {
			const hello = await bridge.request("initialize", {
				protocolVersion: 1,
				host: { name: "pi", version: options.version },
				profile: "pi",
				ui: options.ui,
			});
			bridge.profile = hello.profile;
			bridge.turns = hello.turns === true;
			return bridge;
		} catch (error) {
			bridge.kill();
			throw error;
		}
	}

	private constructor(private options: BridgeOptions) {
		// A process group of its own: Ctrl-C is pi's, which then ends the bridge in order.
		this.process = spawn(options.command, ["bridge", "--profile", "pi", ...options.arguments], {
			cwd: options.cwd,
			stdio: ["pipe", "pipe", "pipe"],
			detached: process.platform !== "win32",
		});
		this.ended = new Promise((resolve) => {
			const end = (reason: string) => {
				if (this.over === undefined) {
					this.over = reason;
					for (const { reject } of this.waiting.values()) reject(new Error(reason));
					this.waiting.clear();
					options.onEnd(reason);
				}
				resolve();
			};
			this.process.on("error", (error: NodeJS.ErrnoException) => {
				const missing = error.code === "ENOENT" || error.code === "EACCES";
				end(
					missing
						? `the program ${options.command} was not found: install Toolway, or set TOOLWAY_BIN to its path`
						: `toolway bridge could not be started: ${error.message}`,
				);
			});
			this.process.on("close", (code, signal) => {
				const said = this.said.trim();
				end(`toolway bridge has ended (${signal ?? code})${said ? `: ${said}` : ""}`);
			});
		});
		this.process.stdout?.on("data", (chunk: Buffer) => this.read(chunk));
		this.process.stderr?.on("data", (chunk: Buffer) => {
			this.said = (this.said + chunk.toString("utf8")).slice(-KEPT);
		});
		// Its end is told by "close".
		this.process.stdin?.on("error", () => {});
	}

	get isOpen(): boolean {
		return this.over === undefined;
	}

	request(method: string, params: Json = {}): Promise<any> {
		if (this.over !== undefined) return Promise.reject(new Error(this.over));
		const id = ++this.last;
		return new Promise((resolve, reject) => {
			this.waiting.set(id, { resolve, reject });
			this.process.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
		});
	}

	/** The same, where nobody wants to know what came of it. */
	tell(method: string, params: Json = {}): void {
		if (this.over !== undefined) return;
		this.process.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`);
	}

	/** Ends it in order, by force where that takes too long. */
	async close(): Promise<void> {
		if (this.over !== undefined) return;
		this.request("shutdown").catch(() => {});
		this.process.stdin?.end();
		const timer = setTimeout(() => this.kill(), PATIENCE);
		await this.ended;
		clearTimeout(timer);
	}

	private kill(): void {
		this.process.kill("SIGKILL");
	}

	/** Lines end at "\n" and nowhere else. */
	private read(chunk: Buffer): void {
		let start = 0;
		for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
			const line = Buffer.concat([...this.rest, chunk.subarray(start, end)]).toString("utf8");
			this.rest = [];
			start = end + 1;
			if (line) this.take(JSON.parse(line));
		}
		if (start < chunk.length) this.rest.push(chunk.subarray(start));
	}

	private take(message: Json): void {
		if (message.method !== undefined) {
			this.options.onNotification(message.method, message.params);
			return;
		}
		const waiting = this.waiting.get(message.id);
		this.waiting.delete(message.id);
		if (message.error) waiting?.reject(new BridgeFault(message.error.message, message.error.code));
		else waiting?.resolve(message.result);
	}
}
