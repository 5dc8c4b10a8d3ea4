/** As much of LangChain's types as the example uses: it is not in the main install. */
declare module 'langchain' {
  interface Message {
    readonly content: unknown;
    readonly name?: string;
    readonly status?: string;
    getType(): string;
  }
  export const AIMessage: new (fields: object) => Message;
  export const ToolMessage: new (fields: object) => Message;
  export function tool(execute: (input: never) => unknown, fields: object): object;
  export function createMiddleware(middleware: object): object;
  export function createAgent(options: object): {
    invoke(input: object): Promise<{ readonly messages: readonly Message[] }>;
  };
}
declare module '@langchain/core/language_models/chat_models' {
  export class BaseChatModel {
    constructor(fields: object);
  }
}
