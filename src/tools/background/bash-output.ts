/** The `BashOutput` and `KillShell` tools: read and end what `Bash` runs in the background. */
import { z } from 'zod'
import type { Tool } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { BackgroundOutput, BackgroundShells } from './background-shells.ts'
import { BackgroundFault } from './background-shells.ts'

const BashOutputInput = z.object({ bash_id: z.string().min(1).describe('The id that Bash has returned.') })
type BashOutputInput = z.infer<typeof BashOutputInput>

const KillShellInput = z.object({ shell_id: z.string().min(1).describe('The id that Bash has returned.') })
type KillShellInput = z.infer<typeof KillShellInput>

export function createBashOutput(background: BackgroundShells): Tool<BashOutputInput> {
  return {
    name: 'BashOutput',
    description:
      'Returns the new output of a command that runs in the background, since the last call, and whether it still runs.',
    input: BashOutputInput,
    output: z.string(),
    // It concerns only commands that were decided when they began.
    access: () => ({ kind: 'none' }),
    run: ({ bash_id }) => outcomeOf(async () => describe(await background.read(bash_id))),
  }
}

export function createKillShell(background: BackgroundShells): Tool<KillShellInput> {
  return {
    name: 'KillShell',
    description: 'Ends a command that runs in the background, with all of its processes.',
    input: KillShellInput,
    output: z.string(),
    // It concerns only commands that were decided when they began.
    access: () => ({ kind: 'none' }),
    run: ({ shell_id }) =>
      outcomeOf(async () =>
        (await background.kill(shell_id))
          ? `${shell_id} was ended.`
          : `${shell_id} had ended already; what it left running was ended.`,
      ),
  }
}

function describe({ stdout, stderr, end, hasMore }: BackgroundOutput): string {
  const status = !end ? 'running' : end.status === 'completed' ? `completed with exit code ${end.exitCode}` : end.status
  const parts = [
    `[${status}]`,
    end?.status === 'failed' && end.why,
    stdout,
    stderr && `[stderr]\n${stderr}`,
    hasMore && '[There is more output; call again.]',
    stdout === '' && stderr === '' && '[no new output]',
  ]
  return parts.filter((part) => part !== false && part !== '' && part !== undefined).join('\n')
}

async function outcomeOf(work: () => Promise<string>): Promise<ToolOutcome> {
  try {
    return { output: await work() }
  } catch (error) {
    if (!(error instanceof BackgroundFault)) throw error
    return failure('invalid_input', error.message)
  }
}
