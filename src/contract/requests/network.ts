/** Hosts that commands want to reach. A connection holds the request, and belongs to no call. */
import { z } from 'zod'
import { DecideNetworkRequest, NetworkTarget } from '../values/network.ts'
import { Behavior } from '../values/permission.ts'
import type { KindOfRequest } from './kind.ts'
import { logEntry, PERSON } from './kind.ts'

const Network = z.object(NetworkTarget)

export const networkKind = {
  name: 'Network',
  about: 'a command wants to reach a host',
  scope: 'approve',
  waits: 'elsewhere',
  who: PERSON,
  form: {
    is: 'decision',
    title: { english: 'Network access', german: 'Netzzugriff' },
    subject: '{host}:{port}',
    short: '{host}',
    sentence: {
      english: 'The agent wants to connect to {host}:{port}.',
      german: 'Der Agent will sich mit {host}:{port} verbinden.',
    },
    question: 'Allow a command to connect?',
    action: 'Connect to {host}:{port}',
    editorKind: 'fetch',
    noun: 'a host',
    matter: 'a connection to {host}',
    opening: 'A command wants to reach',
    remembered: 'connections to {host}:{port}',
    refusal: 'The host is not listed.',
  },
  payload: Network,
  answer: DecideNetworkRequest.shape,
  example: { behavior: 'allow', remember: true },
  ...logEntry({
    opened: Network,
    answered: z.object({ behavior: Behavior }),
    asks: ({ host, port }) => `waits for a decision: ${host}:${port}`,
    says: ({ behavior }) => behavior,
  }),
} as const satisfies KindOfRequest
