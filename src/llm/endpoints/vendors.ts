/**
 * The vendors of models and the servers of one's own that are known by name: how their models are named, where they are,
 * and which variables hold their keys. It holds no key, and nothing else lists vendors.
 */
import type { LLM_PROVIDERS } from '../../contract/values/llm-config.ts'

export type ProviderName = (typeof LLM_PROVIDERS)[number]

export type Vendor = {
  /** Its provider prefix in LiteLLM, such as `gemini` in `gemini/gemini-3-pro`. */
  readonly id: string
  /** Other prefixes for the same. */
  readonly otherPrefixes?: readonly string[]
  /** The name for people. */
  readonly label: string
  /** What the path of an API is appended to. Undefined: each customer has another URL. */
  readonly baseUrl: string | undefined
  /** The hosts of a vendor without one URL for all; only its customers' own endpoints are there. */
  readonly hosts?: RegExp
  /** The variables of its key, the one that takes precedence first. Empty: it needs no key, or has no usual variable. */
  readonly keyVariables: readonly string[]
  /** The path of the list of its models, below the base URL. */
  readonly modelList: string | undefined
  /** Runs on the machine of its user, and needs no key. */
  readonly isLocal: boolean
  /** The API that it is asked through, unless a configuration or the model says otherwise. */
  readonly provider: ProviderName
  /** The names of the models that it makes, in lower case, as they are written without a prefix. */
  readonly family?: RegExp
  /** Its models have names of other vendors, such as `openai/gpt-5`: only its own prefix is removed. */
  readonly servesOthers?: true
}

const MODELS = '/models'
const COMPATIBLE = { modelList: MODELS, isLocal: false, provider: 'openai' } as const
const LOCAL = { modelList: MODELS, isLocal: true, provider: 'openai', keyVariables: [] } as const

/** The order is that of the documentation. `npm run catalog` may bring names that need a new family; a test says so. */
export const VENDORS: readonly Vendor[] = [
  {
    ...COMPATIBLE,
    id: 'anthropic',
    label: 'Anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    keyVariables: ['ANTHROPIC_API_KEY'],
    provider: 'anthropic',
    family: /^claude-/,
  },
  {
    ...COMPATIBLE,
    id: 'openai',
    label: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    // The open weights (`gpt-oss`) are served by everybody else.
    family: /^(gpt-(?!oss)|chatgpt-|chat-latest$|daybreak-|codex-|computer-use-|o[1-9](-|$))/,
  },
  {
    ...COMPATIBLE,
    id: 'gemini',
    label: 'Google Gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    family: /^(gemini|gemma)-/,
  },
  {
    ...COMPATIBLE,
    id: 'openrouter',
    label: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    keyVariables: ['OPENROUTER_API_KEY'],
    servesOthers: true,
  },
  {
    ...COMPATIBLE,
    id: 'xai',
    label: 'xAI',
    baseUrl: 'https://api.x.ai/v1',
    keyVariables: ['XAI_API_KEY'],
    family: /^grok-/,
  },
  {
    ...COMPATIBLE,
    id: 'groq',
    label: 'Groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyVariables: ['GROQ_API_KEY'],
    servesOthers: true,
  },
  {
    ...COMPATIBLE,
    id: 'mistral',
    label: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    keyVariables: ['MISTRAL_API_KEY'],
    family: /^((open-)?(mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|voxtral)-|labs-|zai-glm-)/,
  },
  {
    ...COMPATIBLE,
    id: 'deepseek',
    label: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com',
    keyVariables: ['DEEPSEEK_API_KEY'],
    family: /^deepseek-/,
  },
  {
    ...COMPATIBLE,
    id: 'together_ai',
    label: 'Together',
    baseUrl: 'https://api.together.xyz/v1',
    keyVariables: ['TOGETHER_API_KEY', 'TOGETHERAI_API_KEY'],
    servesOthers: true,
  },
  {
    ...COMPATIBLE,
    id: 'moonshot',
    label: 'Moonshot',
    baseUrl: 'https://api.moonshot.ai/v1',
    keyVariables: ['MOONSHOT_API_KEY'],
    family: /^(kimi|moonshot)-/,
  },
  {
    ...COMPATIBLE,
    id: 'zai',
    label: 'Z.ai',
    baseUrl: 'https://api.z.ai/api/paas/v4',
    keyVariables: ['ZAI_API_KEY'],
    family: /^glm-/,
  },
  {
    ...COMPATIBLE,
    id: 'minimax',
    label: 'MiniMax',
    baseUrl: 'https://api.minimax.io/v1',
    keyVariables: ['MINIMAX_API_KEY'],
    family: /^minimax-/,
  },
  { ...COMPATIBLE, id: 'azure', label: 'Azure OpenAI', baseUrl: undefined, keyVariables: [], modelList: undefined },
  {
    ...COMPATIBLE,
    id: 'vertex_ai',
    label: 'Google Vertex AI',
    baseUrl: undefined,
    keyVariables: [],
    modelList: undefined,
  },
  {
    ...COMPATIBLE,
    id: 'bedrock',
    label: 'Amazon Bedrock',
    baseUrl: undefined,
    // The pattern takes only regions: `bedrock-runtime.s3.amazonaws.com` is a bucket, which any customer can have made.
    hosts:
      /^bedrock-(runtime\.[a-z]{2}(-[a-z]{1,20}){1,3}-\d\.amazonaws\.com|mantle\.[a-z]{2}(-[a-z]{1,20}){1,3}-\d\.api\.aws)$/,
    keyVariables: ['AWS_BEARER_TOKEN_BEDROCK'],
  },
  {
    ...COMPATIBLE,
    id: 'github_copilot',
    label: 'GitHub Copilot',
    baseUrl: 'https://api.githubcopilot.com',
    keyVariables: [],
  },
  {
    ...COMPATIBLE,
    id: 'vercel_ai_gateway',
    label: 'Vercel AI Gateway',
    baseUrl: 'https://ai-gateway.vercel.sh/v1',
    keyVariables: ['AI_GATEWAY_API_KEY'],
    servesOthers: true,
  },
  {
    ...COMPATIBLE,
    id: 'deepinfra',
    label: 'DeepInfra',
    baseUrl: 'https://api.deepinfra.com/v1/openai',
    keyVariables: ['DEEPINFRA_API_KEY'],
    servesOthers: true,
  },
  {
    ...COMPATIBLE,
    id: 'huggingface',
    label: 'Hugging Face',
    baseUrl: 'https://router.huggingface.co/v1',
    keyVariables: ['HF_TOKEN'],
    servesOthers: true,
  },
  {
    ...COMPATIBLE,
    id: 'nvidia_nim',
    label: 'NVIDIA',
    baseUrl: 'https://integrate.api.nvidia.com/v1',
    keyVariables: ['NVIDIA_API_KEY'],
    servesOthers: true,
  },
  {
    ...COMPATIBLE,
    id: 'github',
    label: 'GitHub Models',
    baseUrl: 'https://models.github.ai/inference',
    keyVariables: [],
    modelList: undefined,
    servesOthers: true,
  },
  { ...LOCAL, id: 'ollama', otherPrefixes: ['ollama_chat'], label: 'Ollama', baseUrl: 'http://127.0.0.1:11434/v1' },
  { ...LOCAL, id: 'lm_studio', label: 'LM Studio', baseUrl: 'http://127.0.0.1:1234/v1' },
  { ...LOCAL, id: 'hosted_vllm', label: 'vLLM', baseUrl: 'http://127.0.0.1:8000/v1' },
  { ...COMPATIBLE, id: 'litellm_proxy', label: 'LiteLLM Proxy', baseUrl: undefined, keyVariables: [] },
]

const BY_PREFIX: ReadonlyMap<string, Vendor> = new Map(
  VENDORS.flatMap((vendor) => [vendor.id, ...(vendor.otherPrefixes ?? [])].map((prefix) => [prefix, vendor] as const)),
)

const BY_HOST: ReadonlyMap<string, Vendor> = new Map(
  VENDORS.flatMap((vendor) =>
    vendor.baseUrl === undefined || vendor.isLocal ? [] : [[new URL(vendor.baseUrl).host, vendor] as const],
  ),
)

/** `prefix`: the text before the first `/` of a model name. */
export const vendorOfPrefix = (prefix: string): Vendor | undefined => BY_PREFIX.get(prefix)

/** The vendor whose own host and port a URL has, whatever its path. Servers of one's own have no host that is theirs alone. */
export function vendorAt(url: string): Vendor | undefined {
  const { host } = new URL(url)
  return BY_HOST.get(host) ?? VENDORS.find(({ hosts }) => hosts?.test(host))
}

/** The vendor whose family a name without a prefix belongs to. */
export function vendorOfName(model: string): Vendor | undefined {
  const name = model.toLowerCase()
  return VENDORS.find(({ family }) => family?.test(name))
}
