#include "engine/runtime/libraries/planned_call.h"

namespace cutaway {
namespace {

/// The tensors as planned, at these addresses.
template <class Address>
std::vector<CtTensor> placed(const CtTensor* planned, std::span<Address const> addresses) {
    std::vector<CtTensor> tensors(planned, planned + addresses.size());
    for (size_t i = 0; i < addresses.size(); ++i) tensors[i].data = const_cast<void*>(addresses[i]);
    return tensors;
}

/// Plans of plugins' libraries are made elsewhere, and run as those of ours do.
std::unique_ptr<LibraryPlan> planNothing(const CtCall&, int, CtNeeds&) { return nullptr; }
const CtLibrary& pluginsLibrary() {
    static const CtLibrary library = makeLibrary<planNothing>("a plugin's library");
    return library;
}

}  // namespace

Result<std::unique_ptr<PlannedCall>> PlannedCall::plan(const CtLibrary& library, std::unique_ptr<OwnedCall> call,
                                                       int threads) {
    std::unique_ptr<PlannedCall> planned(new PlannedCall(library, std::move(call)));
    planned->m_plan = library.plan(&planned->m_call->call(), threads, &planned->m_needs);
    if (planned->m_plan == nullptr) return planned->failure();
    return planned;
}

Result<std::unique_ptr<PlannedCall>> PlannedCall::planByPlugin(std::string name, const Planner& planner,
                                                               std::unique_ptr<OwnedCall> call, int threads) {
    std::unique_ptr<PlannedCall> planned(new PlannedCall(pluginsLibrary(), std::move(call)));
    planned->m_plugin = std::move(name);
    std::unique_ptr<LibraryPlan> made;
    if (!toldIfThrown([&] { made = planner(planned->m_call->call(), threads, planned->m_needs); }))
        return planned->failure();
    planned->m_plan = reinterpret_cast<CtPlan*>(made.release());
    return planned;
}

PlannedCall::~PlannedCall() {
    if (m_plan != nullptr) m_library->drop(m_plan);
}

Error PlannedCall::failure() const {
    if (isPlugins())
        return {ErrorCode::ToolFailed,
                std::string(m_call->call().op) + ": " + m_library->error(),
                {},
                {"without the plugin, or with --disable library." + m_plugin + ", Cutaway computes the call itself"}};
    return unsupported(std::string(m_call->call().op) + ": " + m_library->name + ": " + m_library->error(), {});
}

Result<void> PlannedCall::pack(std::span<const void* const> operands, DeviceMemory& device) {
    if (m_library->pack == nullptr || m_needs.packed == 0) return {};
    CT_TRY(m_packed, device.allocate(static_cast<size_t>(m_needs.packed)));
    const std::vector<CtTensor> tensors = placed(m_call->call().operands, operands);
    if (m_library->pack(m_plan, tensors.data(), m_packed->address()) != 0) return failure();
    return {};
}

bool PlannedCall::sharePacked(const PlannedCall& other) {
    if (m_packed || !other.m_packed || m_needs.packed != other.m_needs.packed || m_library != other.m_library ||
        m_library->packAlike == nullptr || m_library->packAlike(m_plan, other.m_plan) == 0)
        return false;
    const CtCall &a = m_call->call(), &b = other.m_call->call();
    for (int i = 0; i < a.operandCount; ++i)
        if (packs(static_cast<size_t>(i)) && a.operands[i].data != b.operands[i].data) return false;
    m_packed = other.m_packed;
    return true;
}

bool PlannedCall::reads(size_t operand) const {
    return m_library->uses == nullptr || (m_library->uses(m_plan, static_cast<int32_t>(operand)) & CT_READS) != 0;
}
bool PlannedCall::packs(size_t operand) const {
    return m_library->uses == nullptr || (m_library->uses(m_plan, static_cast<int32_t>(operand)) & CT_PACKS) != 0;
}

std::vector<std::string> PlannedCall::implementations() const {
    return reinterpret_cast<const LibraryPlan*>(m_plan)->implementations();  // all of ours are made by makeLibrary
}

Result<void> PlannedCall::run(std::span<const void* const> operands, std::span<void* const> results, void* scratch,
                              const CtParallel& parallel) const {
    const std::vector<CtTensor> in = placed(m_call->call().operands, operands),
                                out = placed(m_call->call().results, results);
    const void* const packed = m_packed ? m_packed->address() : nullptr;
    if (m_library->run(m_plan, in.data(), out.data(), packed, scratch, &parallel) != 0) return failure();
    return {};
}

}  // namespace cutaway
