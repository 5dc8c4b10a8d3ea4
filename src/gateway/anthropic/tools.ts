import { lastValueFrom } from 'rxjs';
import { definitionOf } from '../../agent/loop/definitions.ts';
import { storedOutputs } from '../../agent/loop/stored-outputs.ts';
import { agentLimits, type AgentLimits } from '../../agent/loop/limits.ts';
import { LoopGuard } from '../../agent/loop/guard.ts';
import type { ToolCallPart } from '../../agent/message.ts';
import { runTools, type AgentLayer } from '../../agent/loop/tool-step.ts';
import { WireNames } from '../../agent/wire/names.ts';
import type { ToolErrorKind } from '../../contract/error-kind.ts';
import type { AnyTool } from '../../contract/tool.ts';
import type { PlanOptions } from '../../contract/turn.ts';
import type { Block, Fields } from './blocks.ts';
import { clientNames } from './client-tools.ts';

/** Anthropic's own limit. */
const NAME_MAX = 128;

/** The tools as one request offers them: under names that the client's own tools do not have. */
export interface OfferedTools {
  /** Their definitions, each as JSON. */
  readonly definitions: readonly string[];
  /** The tool that a name on the wire stands for. */
  toolOf(wireName: unknown): AnyTool | undefined;
}

/** One result, as a block and as what is known of it. */
export interface GatewayResult {
  readonly toolUseId: string;
  readonly toolName: string;
  readonly json: string;
  /** Of a failure. */
  readonly kind?: ToolErrorKind;
}

export interface GatewayToolLimits {
  /** Calls of the gateway's tools in one step. Default 32. */
  readonly toolCallsPerStep: number;
  /** Steps of one request; in the last one the model may call no tool. Default 25. */
  readonly steps: number;
  /** Characters of one result that the model is shown. Default 200,000. */
  readonly outputChars: number;
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** What a tool is offered by, beside its name. */
const described = (tool: AnyTool): Fields => {
  const { description, inputSchema } = definitionOf(tool);
  return { ...(description === undefined || description === '' ? {} : { description }), input_schema: inputSchema };
};

/** A worker makes a gateway for each request, out of the same tools: their schemas are written once. */
const descriptions = new WeakMap<AnyTool, Fields>();

const describedOnce = (tool: AnyTool): Fields => {
  const known = descriptions.get(tool) ?? described(tool);
  descriptions.set(tool, known);
  return known;
};

/** The gateway's own tools: how they are offered, and how their calls run. */
export class GatewayTools {
  readonly #tools: ReadonlyMap<string, AnyTool>;
  readonly #definitions: ReadonlyArray<readonly [name: string, fields: Fields]>;
  readonly #layer: AgentLayer;
  readonly #planOptions: PlanOptions;
  readonly #limits: AgentLimits;
  readonly #usual: OfferedTools;

  constructor(tools: readonly AnyTool[], layer: AgentLayer, planOptions: PlanOptions, limits: GatewayToolLimits) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#definitions = tools.map((tool) => [tool.name, describedOnce(tool)]);
    this.#layer = layer;
    this.#planOptions = planOptions;
    this.#limits = agentLimits({
      toolCallsPerTurn: limits.toolCallsPerStep,
      turns: limits.steps,
      outputChars: limits.outputChars,
      keptChars: 0,
    });
    this.#usual = this.#offered([]);
  }

  get size(): number {
    return this.#tools.size;
  }

  /** @param body the client's request */
  offered(body: Fields): OfferedTools {
    const names = clientNames(body);
    return names.some((name) => this.#usual.toolOf(name) !== undefined) ? this.#offered(names) : this.#usual;
  }

  #offered(taken: readonly string[]): OfferedTools {
    const names = new WireNames(NAME_MAX);
    const used = new Set(taken);
    const byWire = new Map<string, AnyTool>();
    const definitions = this.#definitions.map(([name, fields]) => {
      const base = names.wire(name);
      let wireName = base;
      // A client's tool of the same name keeps it.
      for (let number = 2; used.has(wireName); number++) wireName = `${base.slice(0, NAME_MAX - 8)}_${number}`;
      used.add(wireName);
      const tool = this.#tools.get(name);
      if (tool !== undefined) byWire.set(wireName, tool);
      return JSON.stringify({ name: wireName, ...fields });
    });
    return { definitions, toolOf: (name) => (isText(name) ? byWire.get(name) : undefined) };
  }

  /** What the steps of one request share: calls that come back with the same result are noticed. */
  guard(): LoopGuard {
    return new LoopGuard(this.#limits.loop);
  }

  /** Runs calls as a turn: one result each, in call order, also when `signal` ends it early. */
  async run(
    blocks: readonly Block[],
    offered: OfferedTools,
    guard: LoopGuard,
    signal: AbortSignal,
  ): Promise<readonly GatewayResult[]> {
    const calls = blocks.map((block) => {
      const call = this.#callOf(block, offered);
      return { call, givenId: call.id };
    });
    const context = {
      spillway: this.#layer,
      tools: this.#tools,
      limits: this.#limits,
      planOptions: this.#planOptions,
      identity: {},
      guard,
      outputs: storedOutputs(0, () => ''),
      signal,
      isOutOfTime: () => false,
    };
    const last = await lastValueFrom(runTools(calls, context));
    if (last.type !== 'answered') throw new TypeError('the turn ended without answers');
    return last.answers.map(({ result: { callId, toolName, text, isError }, kind }) => ({
      toolUseId: callId,
      toolName,
      json: JSON.stringify({
        type: 'tool_result',
        tool_use_id: callId,
        content: text,
        ...(isError === true ? { is_error: true } : {}),
      }),
      ...(kind === undefined ? {} : { kind }),
    }));
  }

  #callOf({ value, unparsed }: Block, offered: OfferedTools): ToolCallPart {
    const name = offered.toolOf(value['name'])?.name ?? String(value['name']);
    return {
      type: 'tool_call',
      id: String(value['id']),
      name,
      ...(unparsed === undefined ? { input: value['input'] } : { unparsed }),
    };
  }
}
