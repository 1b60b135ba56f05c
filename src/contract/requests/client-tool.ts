/** Calls of tools that clients execute. */
import { z } from 'zod'
import { PostToolResult } from '../client-tools/client-tool.ts'
import { inputText, textOf } from '../values/output-text.ts'
import type { KindOfRequest } from './kind.ts'
import { logEntry } from './kind.ts'

const ClientToolCall = z.object({
  name: z.string(),
  input: z
    .record(z.string(), z.unknown().describe('A JSON value.'))
    .describe('The input to execute, as hooks and decisions left it.'),
})

export const clientToolKind = {
  name: 'ClientTool',
  about: 'a client executes a call',
  scope: 'write',
  waits: 'waiting_for_client',
  who: 'The program that offers this tool answers with its result',
  form: { is: 'program', title: { english: 'Waits for a program', german: 'Wartet auf ein Programm' } },
  payload: ClientToolCall,
  answer: PostToolResult.shape,
  example: { output: { number: '17', status: 'shipped' } },
  ...logEntry({
    opened: ClientToolCall,
    answered: z.object({
      output: z.unknown().describe('As the client sent it, without secrets.'),
      is_error: z.boolean(),
    }),
    asks: ({ name, input }) => `waits for a client: ${name}: ${inputText(input)}`,
    says: ({ output, is_error }) => `a client ${is_error ? 'reported an error' : 'answered'}: ${textOf(output)}`,
  }),
} as const satisfies KindOfRequest
