/**
 * The tools of one MCP server as they are offered to models. Everything that a server says about its tools is
 * untrusted: this is the only file that decides what of it is shown.
 */
import { z } from 'zod'
import type { McpServer } from '../../contract/mcp/mcp-server.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { ShowText } from './shown-text.ts'
import { toolNameOf } from '../../state/mcp-tools.ts'
import { isDeeper } from '../../contract/client-tools/client-tool.ts'

export const MAX_TOOLS = 1000
const MAX_DESCRIPTION_CHARS = 2048
const MAX_SCHEMA_CHARS = 32 * 1024
/** The length of all tools of a server. Models take no more than this, and each request of a run would repeat it. */
const MAX_OFFERED_CHARS = 4 * 1024 ** 2
/** Deeper schemas are refused by model providers, and with them the whole request. */
const MAX_SCHEMA_DEPTH = 24
/** The number of tools that the view of the server shows as left out. */
const MAX_LEFT_OUT = 50
const MAX_SHOWN_NAME = 80

/** The tool as a server lists it; the rest is not used. */
const ListedTool = z.object({ name: z.string(), description: z.string().optional(), inputSchema: z.unknown() })
type ListedTool = z.infer<typeof ListedTool>

export type OfferedTool = {
  /** The name for the model. */
  readonly name: string
  /** The name on the server. */
  readonly original: string
  readonly description: string
  readonly inputSchema: object
}

export type OfferedTools = { readonly tools: readonly OfferedTool[]; readonly leftOut: readonly string[] }

export async function offerTools(
  server: string,
  {
    allowed_tools: allowedTools,
    disallowed_tools: disallowedTools,
  }: Pick<McpServer, 'allowed_tools' | 'disallowed_tools'>,
  listedTools: readonly unknown[],
  show: ShowText,
): Promise<OfferedTools> {
  const tools = new Map<string, OfferedTool>()
  const leftOut: string[] = []
  const leaveOut = (name: string, reason: string) => {
    if (leftOut.length < MAX_LEFT_OUT) leftOut.push(`${show(name, MAX_SHOWN_NAME).replaceAll(/\s+/g, ' ')}: ${reason}`)
  }
  const slices = createSlices()
  let room = MAX_OFFERED_CHARS
  for (const [at, item] of listedTools.entries()) {
    await slices.rest()
    const { data: tool } = ListedTool.safeParse(item)
    if (!tool) {
      leaveOut(`number ${at + 1}`, 'it is not a tool')
      continue
    }
    if ((allowedTools && !allowedTools.includes(tool.name)) || disallowedTools?.includes(tool.name)) continue
    const name = toolNameOf(server, tool.name)
    const schema = readSchema(tool.inputSchema)
    if (tools.has(name)) leaveOut(tool.name, 'the server lists it twice')
    else if (typeof schema === 'string') leaveOut(tool.name, schema)
    else {
      const offeredTool = describe(tool, name, schema, show)
      room -= JSON.stringify(offeredTool).length
      if (room < 0) leaveOut(tool.name, `the tools before it have ${MAX_OFFERED_CHARS} characters together`)
      else tools.set(name, offeredTool)
    }
  }
  return { tools: [...tools.values()], leftOut }
}

function describe(tool: ListedTool, name: string, schema: object, show: ShowText): OfferedTool {
  const description = show(tool.description ?? '', MAX_DESCRIPTION_CHARS)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
  const inputSchema = mapStrings(schema, (text) => show(text, MAX_SCHEMA_CHARS)) as object
  return { name, original: tool.name, description, inputSchema }
}

/** Returns what models accept, or why the tool is left out. */
function readSchema(schema: unknown): object | string {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return 'its input schema is not an object'
  const { $schema: _, ...rest }: Readonly<Record<string, unknown>> = { ...schema }
  if (rest['type'] !== undefined && rest['type'] !== 'object') return 'its input is not an object'
  const { properties = {}, required = [] } = rest
  if (typeof properties !== 'object' || properties === null || Array.isArray(properties))
    return 'its input schema is not valid'
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
    return 'its input schema is not valid'
  if (isDeeper(rest, MAX_SCHEMA_DEPTH)) return 'its input schema is nested too deep'
  if (JSON.stringify(rest).length > MAX_SCHEMA_CHARS) return 'its input schema is too large'
  return { ...rest, type: 'object', properties }
}

/** The list is at the beginning of each request to the model, which providers cache: tools keep their place in it. */
export function inFormerOrder(tools: OfferedTools['tools'], former: OfferedTools['tools']): OfferedTools['tools'] {
  const places = new Map(former.map(({ name }, at) => [name, at]))
  const placeOf = ({ name }: { readonly name: string }) => places.get(name) ?? former.length
  return tools.toSorted((a, b) => placeOf(a) - placeOf(b))
}
