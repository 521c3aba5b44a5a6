// A tool of a pi extension, for the agent to call over the bridge.

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI) {
	pi.registerTool({
		name: "weather",
		label: "weather",
		description: "Today's weather of a city.",
		promptGuidelines: ["Use weather for weather alone."],
		parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
		async execute(_id, params: any, signal, onUpdate) {
			// A slow city: until it is given up. It tells when it waits.
			if (params.city === "Slow") {
				const over = new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("given up"))));
				onUpdate?.({ content: [{ type: "text", text: "waiting" }], details: undefined });
				await over;
			}
			return { content: [{ type: "text", text: `4 degrees, snow in ${params.city}` }], details: undefined };
		},
	});
}
