// cutaway-worker: runs a compiled graph on behalf of a session, so that a crash there is only an error here.
#include "engine/runtime/cpu/worker.h"

int main(int argc, char** argv) { return cutaway::workerMain(argc, argv); }
