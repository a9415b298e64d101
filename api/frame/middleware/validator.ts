import type { NextFunction, Request, Response } from 'express';
import { middleware as openApiValidator } from 'express-openapi-validator';
import type { Contract, Operation } from '../contract.ts';
import { type ContractPart, splitContract } from '../contractParts.ts';
import { leaveOutCompilingReferences, leaveOutOtherFiles, leaveOutUnusedSpecCheck } from './unusedCompiling.ts';

/** Given to the validator for an operation that takes any media type. */
const anyMediaType = 'application/octet-stream';

type Handler = (req: Request, res: Response, next: NextFunction) => unknown;

/** What express-openapi-validator stores about an operation on `req.openapi`. */
interface OperationMetadata {
  expressRoute: string;
  openApiRoute: string;
  pathParams: Record<string, string>;
  /** The schemas of its answers, which the response step checks. */
  _responseSchema?: { responses: Record<string, unknown> };
}

interface ValidatorOptions {
  validateResponses: boolean;
  securityHandlers: Record<string, (req: Request) => Promise<boolean>>;
}

/**
 * express-openapi-validator split into its steps. The body is read only after the credential was checked, and the
 * validator's own route lookup, which compiles every path on every request, runs once per operation. A path is loaded
 * at its first request, and an operation's schemas are compiled at the operation's first request. This takes about ten
 * milliseconds each time. All of them at the start would take seconds, and most are never used.
 */
export function createValidator(contract: Contract, options: ValidatorOptions) {
  leaveOutUnusedSpecCheck();
  leaveOutCompilingReferences();
  leaveOutOtherFiles();
  const partOf = new Map<Operation, LoadedPart>();
  for (const part of splitContract(contract)) {
    const loaded = createPart(part, options);
    for (const operation of part.operations) partOf.set(operation, loaded);
  }

  /** A step of the part that `prepare` has loaded for the request's operation. */
  const stepOf = (name: keyof Steps) => (req: Request, res: Response, next: NextFunction) => {
    const part = req.operation === undefined ? undefined : partOf.get(req.operation);
    return part === undefined ? next() : part.steps[name](req, res, next);
  };

  async function metadataOf(operation: Operation): Promise<OperationMetadata> {
    const found = (await partOf.get(operation)?.load())?.get(operation);
    if (found === undefined) throw new Error(`The contract has no operation ${operation.id}.`);
    return found;
  }

  return {
    /** Tells the validator which operation the request is for. */
    async prepare(req: Request, operation: Operation, params: Record<string, string>): Promise<void> {
      Object.assign(req, { openapi: { ...(await metadataOf(operation)), pathParams: params }, params });
    },
    security: stepOf('security'),
    request: withBareMediaType(stepOf('request')),
    response: stepOf('response'),
  };
}

type Steps = ReturnType<typeof createSteps>;

type LoadedPart = ReturnType<typeof createPart>;

function createPart(part: ContractPart, options: ValidatorOptions) {
  let steps: Steps | undefined;
  let loading: Promise<Map<Operation, OperationMetadata>> | undefined;

  async function load(): Promise<Map<Operation, OperationMetadata>> {
    steps = createSteps(part, options);
    const metadata = new Map<Operation, OperationMetadata>();
    for (const operation of part.operations) {
      const req = imitate(operation);
      await run(steps.load, req);
      await run(steps.lookUp, req);
      const found = (req as { openapi?: OperationMetadata }).openapi;
      if (found?.openApiRoute !== operation.path)
        throw new Error(`The contract's path ${operation.path} is ambiguous.`);
      metadata.set(operation, found);
    }
    return metadata;
  }

  return {
    /** Reads this part of the contract, once. */
    load(): Promise<Map<Operation, OperationMetadata>> {
      loading ??= load();
      return loading;
    },
    get steps(): Steps {
      if (steps === undefined) throw new Error('This part of the contract is not loaded yet.');
      return steps;
    },
  };
}

function createSteps(part: ContractPart, options: ValidatorOptions) {
  const handlers = openApiValidator({
    apiSpec: part.copy({ withAnswers: options.validateResponses }) as never,
    // A test checks the document against OpenAPI's schema.
    validateApiSpec: false,
    validateRequests: { allowUnknownQueryParameters: false, coerceTypes: false },
    // Streams are not JSON and do not pass through here. Another test checks the shapes of their chunks.
    validateResponses: options.validateResponses,
    validateSecurity: { handlers: options.securityHandlers },
    validateFormats: true,
    ajvFormats: { mode: 'full' },
    fileUploader: false,
  }) as Handler[];
  const step = (name: string): Handler => {
    const found = handlers.find((handler) => handler.name === name);
    if (found === undefined) throw new Error(`express-openapi-validator has no step ${name} any more.`);
    return found;
  };
  return {
    load: step('pathParamsMiddleware'),
    lookUp: step('metadataMiddleware'),
    security: step('securityMiddleware'),
    request: step('requestMiddleware'),
    response: options.validateResponses ? withOneStatus(step('responseMiddleware')) : pass,
  };
}

const pass: Handler = (_req, _res, next) => next();

/**
 * The validator keeps a compiled schema for each spelling of `content-type` that it meets. It gets only bare media
 * types, or a client could fill the memory with `application/json; a=1`, `a=2` and so on.
 */
function withBareMediaType(handler: Handler): Handler {
  return (req, res, next) => {
    const given = req.headers['content-type'];
    const { bodyTypes = [] } = req.operation ?? {};
    const bare = given?.split(';')[0]?.trim().toLowerCase();
    if (bodyTypes.length === 0) delete req.headers['content-type'];
    else if (bare !== undefined) req.headers['content-type'] = bodyTypes.includes('*/*') ? anyMediaType : bare;
    return handler(req, res, (error?: unknown) => {
      if (given !== undefined) req.headers['content-type'] = given;
      next(error);
    });
  };
}

/**
 * For the first answer of an operation the validator compiles the schemas of all its statuses. There are a dozen, each
 * with a walk through the document: a tenth of a second. This shows it only the status at hand, under a route of its
 * own because the validator caches compiled schemas by route.
 */
function withOneStatus(handler: Handler): Handler {
  return (req, res, next) =>
    handler(req, res, (error?: unknown) => {
      const check = res.json;
      res.json = (body) => {
        const { openapi } = req as { openapi?: OperationMetadata };
        if (openapi?._responseSchema !== undefined) {
          const status = String(res.statusCode);
          const { [status]: answer } = openapi._responseSchema.responses;
          const responses = answer === undefined ? {} : { [status]: answer };
          const expressRoute = `${openapi.expressRoute} ${status}`;
          Object.assign(req, { openapi: { ...openapi, expressRoute, _responseSchema: { responses } } });
        }
        return check.call(res, body);
      };
      next(error);
    });
}

/** The minimal request that the validator's own steps accept. */
function imitate({ method, path, bodyTypes }: Pick<Operation, 'method' | 'path'> & Partial<Operation>): Request {
  const url = path.replace(/\{[^}]+\}/g, 'x');
  const contentType = bodyTypes?.[0];
  return {
    method,
    path: url,
    url,
    originalUrl: url,
    baseUrl: '',
    app: { enabled: () => false, param: () => undefined },
    headers: contentType === undefined ? {} : { 'content-type': contentType },
    query: {},
    params: {},
    body: {},
  } as unknown as Request;
}

function run(handler: Handler, req: Request): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (error?: unknown) => (error === undefined ? resolve() : reject(error));
    Promise.resolve(handler(req, {} as Response, next as NextFunction)).catch(reject);
  });
}

export type Validator = ReturnType<typeof createValidator>;
