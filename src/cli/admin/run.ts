import { serveAdmin, type AdminServer } from '../../gateway/admin-server.ts';
import type { AdminLayer } from '../../gateway/admin.ts';
import type { ApprovalsInStore } from '../../gate/answers.ts';
import { environment, type Environment } from '../environment.ts';
import { UsageError } from '../arguments/usage.ts';

/**
 * Serves the admin page of a run at a loopback port, and says where and, unless `SPILLWAY_ADMIN_TOKEN` gives one, by
 * which token.
 * @throws UsageError when the port or the token cannot be used
 */
export async function openAdmin(
  layer: AdminLayer,
  port: number,
  note: (text: string) => void,
  env: Environment = environment,
  approvals?: ApprovalsInStore,
): Promise<AdminServer> {
  const { SPILLWAY_ADMIN_TOKEN: token } = env;
  const given = token === undefined || token === '' ? {} : { token };
  try {
    const server = await serveAdmin(layer, {
      port,
      ...given,
      ...(approvals === undefined ? {} : { approvals }),
      onRefused: ({ reason, status, method }) => note(`admin: ${method} refused, ${reason} (${status})`),
    });
    note(`admin: ${server.url}${'token' in given ? '' : `, token ${server.token}`}`);
    return server;
  } catch (error) {
    throw new UsageError(`--admin: ${(error as Error).message}`, { cause: error });
  }
}
