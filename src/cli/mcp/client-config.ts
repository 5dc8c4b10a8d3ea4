import type { McpCommand } from '../arguments/mcp.ts';

/** An argument as a POSIX shell takes it. */
const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

const json = (value: unknown): string => JSON.stringify(value, undefined, 2);

/** What the usual clients want in their configuration, so that they start the proxy with this command line. */
export function clientConfig({ name, given }: McpCommand): string {
  const command = 'npx';
  const args = ['-y', 'spillway', 'mcp', ...given];
  const line = [command, ...args].map(shellWord).join(' ');
  const toml = `[mcp_servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}`;
  return [
    '# Claude Desktop (claude_desktop_config.json), Cursor (.cursor/mcp.json), Windsurf, Cline, Gemini CLI:',
    json({ mcpServers: { [name]: { command, args } } }),
    '',
    '# VS Code (.vscode/mcp.json):',
    json({ servers: { [name]: { type: 'stdio', command, args } } }),
    '',
    '# Zed (settings.json):',
    json({ context_servers: { [name]: { command, args, env: {} } } }),
    '',
    '# Codex (~/.codex/config.toml):',
    toml,
    '',
    '# Claude Code:',
    `claude mcp add ${name} -- ${line}`,
    '',
  ].join('\n');
}
